import { type Doors, type HostileService, plainDoor } from './door.ts';

/** The routes that every service has, for whoever operates it. They need no key. */
export function operationalDoors(service: HostileService): Doors {
  const door = (path: string, statuses: readonly number[] = [200]) =>
    plainDoor({ service, method: 'GET', path, headers: { authorization: '' } }, statuses);
  return {
    'GET /': door('/'),
    'GET /livez': door('/livez'),
    'GET /readyz': door('/readyz'),
    'GET /openapi.json': door('/openapi.json'),
    'GET /docs': door('/docs'),
    'GET /docs/{file}': door('/docs/swagger-ui-bundle.js'),
  };
}

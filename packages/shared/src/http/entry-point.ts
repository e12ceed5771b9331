import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { PathDescriptions } from './openapi.ts';

/** Where everything else of a service is found, as paths of the service itself. */
const LINKS = {
  docs: '/docs',
  openapi: '/openapi.json',
  health: { live: '/livez', ready: '/readyz' },
  metrics: '/metrics',
} as const;

/** `GET /` for the service's OpenAPI document. */
export const ENTRY_POINT_PATH: PathDescriptions = {
  '/': {
    get: {
      operationId: 'describeService',
      summary: 'The name of this service and its paths',
      tag: 'operation',
      responses: {
        200: {
          description: 'The name of the service and its paths.',
          content: {
            'application/json': {
              schema: z.object({
                name: z.string(),
                docs: z.string().meta({ description: 'The reference as a page.' }),
                openapi: z.string().meta({ description: 'The reference as an OpenAPI document.' }),
                health: z.object({ live: z.string(), ready: z.string() }),
                metrics: z.string(),
              }),
              example: { name: 'Sluice API', ...LINKS },
            },
          },
        },
      },
    },
  },
};

/**
 * Answers `GET /` with the service's name and its paths, without a key.
 *
 * @param page where a browser is sent instead, relative to `/`. Default: browsers get the same as others
 */
export function registerEntryPoint(app: FastifyInstance, nameOf: () => Promise<string>, page?: string): void {
  app.get('/', async (request, reply) => {
    if (page === undefined) return { name: await nameOf(), ...LINKS };
    reply.header('vary', 'accept');
    if (request.headers.accept?.includes('text/html')) return await reply.redirect(page);
    return { name: await nameOf(), ...LINKS };
  });
}

import type { ConfiguredServer } from '@sluice/servers/state/connected-server';
import { ArgumentsError } from '@sluice/shared/config/command-line';

/**
 * Returns the server of a name.
 *
 * @param what the argument that names it
 * @throws {ArgumentsError}
 */
export function findServer(what: string, name: string, servers: readonly ConfiguredServer[]): ConfiguredServer {
  const found = servers.find(({ server }) => server.name === name);
  if (found) return found;
  const names = servers.map(({ server }) => server.name).join(', ');
  if (name === '') throw new ArgumentsError(`${what} is needed: one of ${names}.`);
  throw new ArgumentsError(`${what}: there is no server ${name} in CLICKHOUSE_SERVERS_FILE, which has ${names}.`);
}

import type { ConfiguredServer } from '@sluice/servers/state/connected-server';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { distinctRanges } from '@sluice/shared/servers/partition-range';
import {
  areReplicas,
  loadServerConfig,
  loadServersConfig,
  type ServerConfig,
} from '@sluice/shared/servers/server-config';
import type { z } from 'zod';
import type { Environment } from '../command/command.ts';

/** What `--help` says of the option `--server`. */
export const SERVER_HELP =
  '--server NAME   which ClickHouse server, where CLICKHOUSE_SERVERS_FILE names several; default CLICKHOUSE_SERVER';

/**
 * Returns the configuration of the ClickHouse server that a command works on: the one that `--server` names, else
 * CLICKHOUSE_SERVER, else the only one, or the first one of replicas that all have everything.
 *
 * @param name the value of `--server`; empty where it is not given
 * @throws {ArgumentsError} when there is no server of that name, or several and none is named
 * @throws {ConfigError}
 */
export function loadChosenServer<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment,
  name: string,
): ServerConfig<Schema> {
  const { servers } = loadServersConfig(schema, env);
  if (!servers) {
    if (name !== '') throw new ArgumentsError('--server is of use only with CLICKHOUSE_SERVERS_FILE.');
    return loadServerConfig(schema, env);
  }
  const names = servers.map((server) => server.name);
  const isAny = names.length === 1 || (areReplicas(env) && distinctRanges(servers).length === 1);
  const chosen = name || env['CLICKHOUSE_SERVER'] || (isAny ? names[0] : undefined);
  if (chosen === undefined) throw new ArgumentsError(`--server is needed: one of ${names.join(', ')}.`);
  if (!names.includes(chosen)) {
    throw new ArgumentsError(`There is no server ${chosen} in CLICKHOUSE_SERVERS_FILE, which has ${names.join(', ')}.`);
  }
  return loadServerConfig(schema, { ...env, CLICKHOUSE_SERVER: chosen });
}

/**
 * Returns the configurations of all ClickHouse servers of the file, in its order; without a file, that of the only server.
 *
 * @throws {ConfigError}
 */
export function loadAllServers<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment,
): readonly ServerConfig<Schema>[] {
  const { servers } = loadServersConfig(schema, env);
  if (!servers) return [loadServerConfig(schema, env)];
  return servers.map(({ name }) => loadServerConfig(schema, { ...env, CLICKHOUSE_SERVER: name }));
}

/**
 * Refuses a command that replicas have no use for, or that was not shown there.
 *
 * @param what the command
 * @param instead what to do in its place, as a sentence
 * @throws {ArgumentsError}
 */
export function refuseReplicas(env: Environment, what: string, instead: string): void {
  if (!areReplicas(env)) return;
  throw new ArgumentsError(`${what} cannot be used where ClickHouse replicates the tables. ${instead}`);
}

/**
 * Refuses a command that was not shown where replicas share the rows.
 *
 * @param what the command
 * @param instead what to do in its place, as a sentence
 * @throws {ArgumentsError}
 */
export function refuseShared(env: Environment, what: string, instead: string): void {
  if (env['CLICKHOUSE_REPLICATION'] !== 'shared') return;
  throw new ArgumentsError(`${what} cannot be used where replicas share the rows of tables. ${instead}`);
}

/** As {@link loadChosenServer} where `--server` is given, else as {@link loadAllServers}. */
export function loadServersOf<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment,
  name: string,
): readonly ServerConfig<Schema>[] {
  return name === '' ? loadAllServers(schema, env) : [loadChosenServer(schema, env, name)];
}

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

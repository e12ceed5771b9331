import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError, loadConfig } from '../config/config.ts';
import { shownPath } from '../text/printable.ts';
import { distinctRanges, isInRange, sameRange } from './partition-range.ts';
import { parseServersFile, type Server, type ServerDefaults, ServersFileError } from './servers-file.ts';

/** The file of ClickHouse servers. */
export const serversEnv = { CLICKHOUSE_SERVERS_FILE: z.string().min(1).optional() };

/** The file of ClickHouse servers, and which of them a process stores into. */
export const serverEnv = { ...serversEnv, CLICKHOUSE_SERVER: z.string().min(1).optional() };

type Environment = Readonly<Record<string, string | undefined>>;

/** The configuration of a process that works on one ClickHouse server. */
export interface ServerConfig<Schema extends z.ZodObject> {
  /** Has the address, the database and the consumer group of the server. */
  readonly config: z.output<Schema>;
  /** Undefined without a file of servers. */
  readonly server: Server | undefined;
  /** All servers of the file with the same range, where these are replicas; else undefined. */
  readonly replicas: readonly Server[] | undefined;
}

/**
 * As {@link loadConfig}, for a process that works on one ClickHouse server: with a file of servers, CLICKHOUSE_SERVER names one
 * of them, and the file has the address, the database and the consumer group. Of replicas without ranges, any will do.
 *
 * @throws {ConfigError} naming every variable that is wrong, and everything that is wrong with the file
 */
export function loadServerConfig<Schema extends z.ZodObject>(schema: Schema, env: Environment): ServerConfig<Schema> {
  const { servers, errors } = readServers(env);
  const name = env['CLICKHOUSE_SERVER'];
  if (!env['CLICKHOUSE_SERVERS_FILE'] && name) {
    errors.push('CLICKHOUSE_SERVERS_FILE: is required with CLICKHOUSE_SERVER');
  }
  const isAny = !name && areReplicas(env) && distinctRanges(servers ?? []).length === 1;
  const server = isAny ? anyOf(servers ?? []) : servers?.find((one) => one.name === name);
  if (servers && !server) {
    const names = servers.map((one) => one.name).join(', ');
    errors.push(`CLICKHOUSE_SERVER: ${name ? 'is not in the file of servers' : 'is required'}, which has ${names}`);
  }
  const config = loadWithErrors(schema, env, server, errors, (loaded) =>
    server ? partitionErrors(server, loaded['KAFKA_PARTITIONS'] as number | undefined) : [],
  );
  const replicas = server && areReplicas(env) ? sameRange(servers ?? [], server) : undefined;
  return { config, server, replicas };
}

/** The configuration of a process that reads all ClickHouse servers. */
export interface ServersConfig<Schema extends z.ZodObject> {
  /** With a file of servers, its address and database are those of the first one. */
  readonly config: z.output<Schema>;
  /** Undefined without a file of servers. */
  readonly servers: readonly Server[] | undefined;
}

/**
 * As {@link loadConfig}, for a process that reads all ClickHouse servers of a file, if there is one.
 *
 * @throws {ConfigError} naming every variable that is wrong, and everything that is wrong with the file
 */
export function loadServersConfig<Schema extends z.ZodObject>(schema: Schema, env: Environment): ServersConfig<Schema> {
  const { servers, errors } = readServers(env);
  return { config: loadWithErrors(schema, env, servers?.[0], errors), servers };
}

/** @throws {ConfigError} with these errors, and all others */
function loadWithErrors<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment,
  server: Server | undefined,
  errors: string[],
  check: (config: z.output<Schema>) => readonly string[] = () => [],
): z.output<Schema> {
  try {
    const config = loadConfig(schema, server ? withServer(env, server) : env);
    errors.push(...check(config));
    if (errors.length === 0) return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // Without a server, its address is not known.
    const isKnown = (text: string) => errors.length === 0 || !text.startsWith('CLICKHOUSE_URL: is required');
    errors.push(...error.errors.filter(isKnown));
  }
  throw new ConfigError(errors);
}

/** Reads a file of servers. @throws {ServersFileError} naming every error */
export function readServersFile(path: string, env: Environment): readonly Server[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ServersFileError([code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`]);
  }
  return parseServersFile(text, serverDefaults(env));
}

/** Returns what the entries of a file need not say. */
export function serverDefaults(env: Environment): ServerDefaults {
  return {
    database: env['CLICKHOUSE_DATABASE'] || 'sluice',
    group: env['KAFKA_GROUP_ID'] || 'sluice-writer',
    areReplicas: areReplicas(env),
  };
}

/** Processes spread over replicas. */
function anyOf(servers: readonly Server[]): Server | undefined {
  return servers[Math.floor(Math.random() * servers.length)];
}

/** Whether the servers of the file with equal ranges are replicas. */
export function areReplicas(env: Environment): boolean {
  return env['CLICKHOUSE_REPLICATION'] === 'replicated';
}

/** Returns the server at an address; undefined where the file names none there. */
export function serverAt(servers: readonly Server[], url: string): Server | undefined {
  const { host } = new URL(url);
  return servers.find((one) => new URL(one.url).host === host);
}

/** Returns the environment of a process that works on a server. */
export function withServer(env: Environment, { url, database, group }: Server): Environment {
  return { ...env, CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database, KAFKA_GROUP_ID: group };
}

/** Reads the file of servers, if there is one, and returns what is wrong with it. */
function readServers(env: Environment): { readonly servers?: readonly Server[]; readonly errors: string[] } {
  const path = env['CLICKHOUSE_SERVERS_FILE'];
  if (!path) {
    const isMissing = areReplicas(env);
    return {
      errors: isMissing
        ? ['CLICKHOUSE_SERVERS_FILE: is required with CLICKHOUSE_REPLICATION, and names the replicas']
        : [],
    };
  }
  if (env['CLICKHOUSE_REPLICATION'] === 'shared')
    return {
      errors: ['CLICKHOUSE_SERVERS_FILE: CLICKHOUSE_URL leads to all replicas with CLICKHOUSE_REPLICATION=shared'],
    };
  const errors: string[] = [];
  if (env['CLICKHOUSE_URL'])
    errors.push('CLICKHOUSE_URL: CLICKHOUSE_SERVERS_FILE has the addresses; remove one of them');
  try {
    return { servers: readServersFile(path, env), errors };
  } catch (error) {
    if (!(error instanceof ServersFileError)) throw error;
    return { errors: [...errors, ...error.errors.map((one) => `CLICKHOUSE_SERVERS_FILE: ${shownPath(path)} ${one}`)] };
  }
}

function partitionErrors({ name, partitions }: Server, count: number | undefined): string[] {
  if (count === undefined || partitions === undefined || isInRange({ first: 0, last: count - 1 }, partitions.last))
    return [];
  return [
    `CLICKHOUSE_SERVERS_FILE: ${name} has the partitions up to ${partitions.last}, and KAFKA_PARTITIONS is ${count}`,
  ];
}

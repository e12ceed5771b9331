import { type ConfiguredServer, connectTo, ownerOf, serversConfig } from '@sluice/servers/state/connected-server';
import { type DatabaseState, readDatabaseState } from '@sluice/servers/state/database-state';
import { type KnownServer, ownerErrors, replicaProblems, sharedDatabases } from '@sluice/servers/state/problems';
import { isReplicated, loadConfig } from '@sluice/shared/config';
import { endErrors } from '@sluice/shared/servers/partition-range';
import { readServersFile, withServer } from '@sluice/shared/servers/server-config';
import { readingErrors, type Server, ServersFileError } from '@sluice/shared/servers/servers-file';
import { printable } from '@sluice/shared/text/printable';
import type { Environment } from '../command/command.ts';

interface Checked extends ConfiguredServer {
  readonly state: DatabaseState | Error;
}

/**
 * Prints everything that is wrong with a file of servers, and what it should be looked at for; returns the exit code: 1 when
 * something is wrong. It changes nothing.
 *
 * @param env the addresses of the servers are those of the file, the rest is the environment's
 * @throws {ConfigError} when the rest of the environment is wrong
 */
export async function runCheck(path: string, env: Environment, print: (line: string) => void): Promise<number> {
  const servers = readFile(path, env);
  if (!('length' in servers)) {
    for (const error of servers.errors) print(error);
    return 1;
  }
  const checked = await Promise.all(servers.map((server) => check(server, env)));
  const errors = errorsOf(checked);
  for (const error of errors) print(printable(error));
  for (const warning of checked.flatMap(warningsOf)) print(printable(`Warning: ${warning}`));
  print(errors.length === 0 ? `Nothing is wrong with the file. It has ${names(servers)}.` : 'The file is wrong.');
  return errors.length === 0 ? 0 : 1;
}

function readFile(path: string, env: Environment): readonly Server[] | ServersFileError {
  try {
    return readServersFile(path, env);
  } catch (error) {
    if (error instanceof ServersFileError) return error;
    throw error;
  }
}

async function check(server: Server, env: Environment): Promise<Checked> {
  const own = withServer({ ...env, CLICKHOUSE_SERVERS_FILE: '', CLICKHOUSE_SERVER: '' }, server);
  const configured = { server, config: loadConfig(serversConfig, own) };
  await using client = connectTo(configured);
  return { ...configured, state: await readDatabaseState(client).catch((error: Error) => error) };
}

function errorsOf(checked: readonly Checked[]): string[] {
  const known = checked.flatMap(({ server, state }): (KnownServer & { server: Server })[] =>
    state instanceof Error ? [] : [{ name: server.name, server, state }],
  );
  // A growth of the partitions may be under way on some of them. While no database says a number, that of the writers counts.
  const recorded = known.flatMap(({ state }) => [...state.topicPartitions.values()]);
  const counts = recorded.length > 0 ? recorded : checked.map(({ config }) => config.KAFKA_PARTITIONS);
  const serving = checked.map(({ server }) => server).filter(({ serves }) => serves);
  return [
    ...known.flatMap(({ server, state }) => ownerErrors(ownerOf(server), state.identity)),
    ...(checked.some(({ config }) => isReplicated(config)) ? replicaProblems(known) : sharedDatabases(known)),
    ...readingErrors(checked.map(({ server }) => server)),
    ...endErrors(serving, Math.max(...counts)),
  ];
}

function warningsOf({ server: { name, serves }, state }: Checked): string[] {
  if (state instanceof Error) {
    const { message, code } = state as NodeJS.ErrnoException;
    return [`${name} does not answer, and could not be checked: ${message || code}`];
  }
  const { identity, missing, unknown } = state;
  if (unknown.length > 0) return [`${name} has migrations of a newer version: ${unknown.join(', ')}`];
  if (missing > 0) return [`${name} lacks ${missing} migrations, which its writers apply when they start`];
  if (!identity) return [`${name} is empty: fill it with "sluice servers copy" before its writers start`];
  if (identity.state === 'filling' && serves) return [`${name} is being filled, and is not read until then`];
  if (identity.state === 'incomplete') return [`${name} is incomplete: ${identity.detail}`];
  return [];
}

function names(servers: readonly Server[]): string {
  return servers.map(({ name }) => name).join(', ');
}

import { type ConfiguredServer, connectTo, ownerOf } from '@sluice/servers/state/connected-server';
import { type DatabaseState, readDatabaseState } from '@sluice/servers/state/database-state';
import { differentSettings, ownerErrors, replicaProblems, sharedDatabases } from '@sluice/servers/state/problems';
import { createLogger } from '@sluice/shared/base/log';
import { isReplicated } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { printable } from '@sluice/shared/text/printable';
import { fillingCommand } from '@sluice/storage/clickhouse/identity';
import { readLag, totalLag } from '@sluice/storage/kafka/lag';
import type { Kafka } from 'kafkajs';
import { inColumns } from '../command/terminal.ts';

/** A server is behind when it lacks what Kafka has had for so long, in milliseconds. Its writers record it every 2 s. */
const BEHIND_MS = 60_000;

/** The writers of a server, as Kafka knows them. */
interface Writers {
  readonly members: number;
  /** What Kafka has and they have not committed. */
  readonly messages: number;
  /** The age of the oldest of these messages. */
  readonly seconds: number;
}

interface ServerStatus {
  readonly configured: ConfiguredServer;
  /** What its database says, or why it does not answer. */
  readonly state: DatabaseState | Error;
  readonly writers: Writers | Error;
}

/** Prints how all servers are, and what is wrong; returns the exit code: 1 when something is. */
export async function runStatus(servers: readonly ConfiguredServer[], print: (line: string) => void): Promise<number> {
  const statuses = await Promise.all(servers.map(readStatus));
  for (const line of inColumns([HEADER, ...statuses.map(row)])) print(line);
  const problems = problemsOf(statuses);
  for (const problem of problems) print(printable(problem));
  const versions = new Set(statuses.flatMap(({ state }) => ('version' in state ? (state.version ?? []) : [])));
  if (versions.size > 1) print('The versions of ClickHouse differ. Upgrade the others as well, one after the other.');
  if (problems.length === 0) print('Nothing is wrong.');
  return problems.length === 0 ? 0 : 1;
}

const HEADER = [
  'server',
  'state',
  'partitions',
  'read',
  'ClickHouse',
  'writers',
  'messages behind',
  'oldest',
  'stored',
];

function row({ configured: { server }, state, writers }: ServerStatus): string[] {
  const isKnown = !(state instanceof Error);
  const { progress } = isKnown ? state : {};
  return [
    server.name,
    isKnown ? stateName(state) : 'away',
    ownerOf(server).partitions,
    server.serves ? 'yes' : 'no',
    (isKnown && state.version) || '-',
    ...(writers instanceof Error ? ['-', '-', '-'] : [writers.members, writers.messages, seconds(writers.seconds)]),
    progress ? `${seconds(progress.behindMs / 1_000)} ago` : '-',
  ].map(String);
}

function stateName({ identity, version, missing }: DatabaseState): string {
  if (identity) return identity.state;
  return version !== undefined && missing > 0 ? 'outdated' : 'empty';
}

function problemsOf(statuses: readonly ServerStatus[]): string[] {
  const known = statuses.flatMap(({ configured: { server }, state }) =>
    state instanceof Error ? [] : [{ name: server.name, server, state }],
  );
  const areReplicas = statuses.some(({ configured: { config } }) => isReplicated(config));
  const shared = areReplicas ? replicaProblems(known) : sharedDatabases(known);
  return [...statuses.flatMap(problemsOfServer), ...shared, ...differentSettings(known)];
}

function problemsOfServer({ configured: { server }, state, writers }: ServerStatus): string[] {
  const { name } = server;
  const ofWriters =
    writers instanceof Error ? [`${name}: Kafka does not say how far its writers are: ${reasonOf(writers)}.`] : [];
  if (state instanceof Error) return [`${name} does not answer: ${reasonOf(state)}.`, ...ofWriters];
  return [...ofWriters, ...ownerErrors(ownerOf(server), state.identity), ...stateProblems(name, state, writers)];
}

function stateProblems(name: string, state: DatabaseState, writers: Writers | Error): string[] {
  const { identity, progress, missing, isTooNew, haltedPartitions } = state;
  if (isTooNew) return [`${name}: a newer version has changed the tables so that this one cannot use them.`];
  if (missing > 0) return [`${name} lacks ${missing} migrations: start its writers, or npm run migrations -- apply.`];
  if (!identity) return [`${name} is empty: no writer has stored anything.`];
  if (identity.state === 'filling')
    return [`${name} is being filled, and is not read until then: ${fillingCommand(identity.detail)}.`];
  const problems: string[] = [];
  if (identity.state === 'incomplete') {
    problems.push(`${name} is incomplete, and is read only where no other server can be: ${identity.detail}`);
  }
  if (!(writers instanceof Error) && writers.members === 0) problems.push(`${name} has no writers: start them.`);
  if (haltedPartitions > 0) {
    problems.push(`${name}: ${haltedPartitions} partitions are halted: npm run writer -- status --server ${name}.`);
  }
  if (!progress) problems.push(`${name}: its writers have not recorded how far they are.`);
  else if (progress.behindMs > BEHIND_MS) {
    problems.push(`${name} is behind: what Kafka has had for ${seconds(progress.behindMs / 1_000)} is not stored.`);
  }
  return problems;
}

async function readStatus(configured: ConfiguredServer): Promise<ServerStatus> {
  const kafka = createKafka(configured.config, 'sluice-servers', createLogger('sluice-servers', 'silent'));
  await using client = connectTo(configured);
  const asError = (error: Error) => error;
  const [state, writers] = await Promise.all([
    readDatabaseState(client).catch(asError),
    readWriters(kafka, configured).catch(asError),
  ]);
  return { configured, state, writers };
}

async function readWriters(kafka: Kafka, { server, config }: ConfiguredServer): Promise<Writers> {
  const { group: groupId, partitions: range } = server;
  const { groups } = await withAdmin(kafka, (admin) => admin.describeGroups([groupId]));
  const lags = await readLag(kafka, config, groupId, range);
  return {
    members: groups.flatMap(({ members }) => members).length,
    ...totalLag(lags),
  };
}

function reasonOf({ message, code }: NodeJS.ErrnoException): string {
  return (message || code || '').replace(/\.?\s*$/, '');
}

function seconds(value: number): string {
  const whole = Math.round(value);
  if (whole < 120) return `${whole} s`;
  return whole < 7_200 ? `${Math.round(whole / 60)} min` : `${Math.round(whole / 3_600)} h`;
}

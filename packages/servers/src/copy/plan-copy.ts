import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { readNumber } from '@sluice/shared/clickhouse/read-number';
import { Refused } from '@sluice/shared/config/command-line';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { isWithin, type PartitionRange } from '@sluice/shared/servers/partition-range';
import type { Identity } from '@sluice/storage/clickhouse/identity';
import { readLag } from '@sluice/storage/kafka/lag';
import { requireStoppedWriters } from '@sluice/storage/kafka/stopped-writers';
import { TopicRetention } from '@sluice/storage/kafka/topic-retention';
import type { Kafka } from 'kafkajs';
import { type ConfiguredServer, connectForMigrations, ownerOf } from '../state/connected-server.ts';
import { type DatabaseState, isKnown, stateOrReason } from '../state/database-state.ts';
import { ownerErrors, unfitReasons } from '../state/problems.ts';
import { refuseOtherRun } from './copy-log.ts';
import type { RemoteTables } from './remote-table.ts';
import { isDivided, type Share } from './share.ts';

/** With how many bytes of stored data a second a copy is reckoned, where no limit is given. Two busy cores did twice that for both servers. */
const BYTES_PER_SECOND = 10_000_000;

/** How much longer than the copy Kafka has to keep what the source has not stored yet, in seconds. */
const SPARE_SECONDS = 60;

/** A partition of the table `events` of the source. */
export interface SourcePartition {
  readonly partition: string;
  readonly rows: number;
}

export interface CopyPlan {
  readonly source: ConfiguredServer;
  readonly target: ConfiguredServer;
  readonly sourceIdentity: Identity;
  /** What the target gets where it has fewer partitions of Kafka; undefined: everything. */
  readonly share: Share | undefined;
  /** The partitions that the source has at the moment. More may come until the positions are read. */
  readonly partitions: readonly SourcePartition[];
  /** What all tables of the source take on disk. */
  readonly bytes: number;
  /** About how much of that the target gets. */
  readonly copiedBytes: number;
  /** How many events of the target are dropped. */
  readonly dropped: number;
  /** Both versions, where ClickHouse is not of the same. */
  readonly versions: readonly [source: string, target: string] | undefined;
}

export interface PlanOptions {
  readonly source: ConfiguredServer;
  readonly target: ConfiguredServer;
  readonly kafka: Kafka;
  readonly remote: RemoteTables;
  /** The bytes a second that may be read from the source; 0: any number. */
  readonly bandwidth: number;
}

const PARTITIONS = `
SELECT partition_id AS partition, sum(rows) AS rows FROM system.parts
WHERE database = currentDatabase() AND table = 'events' AND active GROUP BY partition_id ORDER BY partition_id`;

const BYTES = `
SELECT table, sum(bytes_on_disk) AS bytes FROM system.parts
WHERE database = currentDatabase() AND active GROUP BY table`;

const EVENTS = `
SELECT sum(rows) AS number FROM system.parts
WHERE database = {database:String} AND table = 'events' AND active`;

const LOST = `
SELECT count() AS number FROM {database:Identifier}.writer_halts FINAL
WHERE resumed_at IS NULL AND reason = 'nothing is stored'`;

/**
 * Checks whether a server can be copied to another one. It changes nothing.
 *
 * @throws {Refused} naming every reason why not
 */
export async function planCopy(options: PlanOptions): Promise<CopyPlan> {
  const { source, target } = options;
  await using connections = new AsyncDisposableStack();
  const connect = (server: ConfiguredServer, database?: string) =>
    connections.adopt(connectForMigrations(server, database), (client) => client.close());
  const [ofSource, ofTarget] = [connect(source), connect(target)];
  const [sourceState, targetState] = await Promise.all([
    stateOrReason(source.server.name, ofSource),
    stateOrReason(target.server.name, ofTarget),
  ]);
  const reasons = [...sourceReasons(options, sourceState), ...targetReasons(options, targetState)];
  const inServer = connect(target, 'default');
  const checks: Promise<unknown>[] = [requireStoppedWriters(options.kafka, target.server.group)];
  if (isKnown(sourceState)) {
    checks.push(requireHeadroom(options, ofSource));
    if (isKnown(targetState)) checks.push(requireSameDatabase(options, inServer, sourceState.identity));
  }
  if (isKnown(targetState) && targetState.version !== undefined) {
    checks.push(requireNotServing(target, targetState, inServer));
    if (targetState.missing === 0) checks.push(refuseOtherRun(ofTarget));
  }
  for (const outcome of await Promise.allSettled(checks)) {
    if (outcome.status === 'rejected') reasons.push((outcome.reason as Error).message);
  }
  if (!isKnown(sourceState) || !isKnown(targetState) || !sourceState.identity || reasons.length > 0) {
    throw new Refused(reasons.join('\n'));
  }
  const share = shareOf(options, sourceState);
  const bytesOfTables = await readBytes(ofSource);
  return {
    ...{ source, target, sourceIdentity: sourceState.identity, share },
    partitions: await readEventPartitions(ofSource),
    bytes: sumOf(bytesOfTables.map(({ bytes }) => bytes)),
    copiedBytes: sumOf(bytesOfTables.map(({ table, bytes }) => (isDivided(table) ? bytes * fractionOf(share) : bytes))),
    dropped: await readNumber(inServer, EVENTS, { database: target.server.database }),
    versions: differentVersions(sourceState, targetState),
  };
}

/** Returns the partitions that the table `events` of a server has now. @throws ClickHouse's errors */
export async function readEventPartitions(client: ClickHouseClient): Promise<readonly SourcePartition[]> {
  return await (await client.query({ query: PARTITIONS, format: 'JSONEachRow' })).json<SourcePartition>();
}

/** Returns about how many of some events of the source the target gets. */
export function rowsOf(rows: number, { share }: Pick<CopyPlan, 'share'>): number {
  return Math.round(rows * fractionOf(share));
}

function fractionOf(share: Share | undefined): number {
  return share ? share.fraction : 1;
}

/** Returns what the target gets of a source that has its partitions, and others. */
function shareOf({ source, target }: PlanOptions, { topicPartitions }: DatabaseState): Share | undefined {
  const range = target.server.partitions;
  const partitionCount = topicPartitions.get(topicNames(source.config).events);
  if (!range || !partitionCount || ownerOf(source.server).partitions === ownerOf(target.server).partitions) {
    return undefined;
  }
  const all = source.server.partitions ?? { first: 0, last: partitionCount - 1 };
  return { range, partitionCount, fraction: sizeOf(range) / sizeOf(all) };
}

function sizeOf({ first, last }: PartitionRange): number {
  return last - first + 1;
}

async function readBytes(client: ClickHouseClient): Promise<{ readonly table: string; readonly bytes: number }[]> {
  return await (await client.query({ query: BYTES, format: 'JSONEachRow' })).json();
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}

function sourceReasons({ source, target }: PlanOptions, state: DatabaseState | string): string[] {
  const reasons = unfitReasons(source.server, state, 'copy a complete server.');
  return isKnown(state) ? [...reasons, ...rangeReasons(source, target, state)] : reasons;
}

function rangeReasons(
  { server: source, config }: ConfiguredServer,
  { server: target }: ConfiguredServer,
  state: DatabaseState,
) {
  const [ofSource, ofTarget] = [ownerOf(source).partitions, ownerOf(target).partitions];
  if (ofSource === ofTarget) return [];
  if (!isWithin(target.partitions, source.partitions)) {
    return [
      `${source.name} has the partitions ${ofSource}, and ${target.name} ${ofTarget}: a server is filled from one that has ` +
        'all of its partitions.',
    ];
  }
  if (!state.identity) return [];
  const count = state.topicPartitions.get(topicNames(config).events);
  const { last = 0 } = target.partitions ?? {};
  if (count !== undefined && last < count) return [];
  return [
    `${target.name} has the partitions ${ofTarget}, and the rows of ${source.name} are spread over ` +
      `${count ?? 'a number of partitions that no writer has recorded'}.`,
  ];
}

function targetReasons({ target }: PlanOptions, state: DatabaseState | string): string[] {
  if (!isKnown(state)) return [state];
  const reasons = ownerErrors(ownerOf(target.server), state.identity);
  if (state.unknown.length > 0) {
    reasons.push(`${target.server.name} has migrations of a newer version: use the command of that version.`);
  }
  return reasons;
}

/** A server that may be read loses no rows. @throws {Refused} */
async function requireNotServing(
  { server }: ConfiguredServer,
  { identity, missing }: DatabaseState,
  client: ClickHouseClient,
): Promise<void> {
  const { name, serves, database } = server;
  if (!serves || identity?.state === 'filling' || identity?.state === 'incomplete') return;
  if ((await readNumber(client, EVENTS, { database })) === 0) return;
  // Its writers have found that what was stored is lost.
  if (missing === 0 && (await readNumber(client, LOST, { database })) > 0) return;
  throw new Refused(
    `${name} has events, and is read: what it has would be dropped. Set "serves": false for it in the file first.`,
  );
}

/** The native address must lead to the very database that the address in the file leads to. @throws {Refused} */
async function requireSameDatabase(
  { source, remote }: PlanOptions,
  client: ClickHouseClient,
  identity: Identity | undefined,
): Promise<void> {
  if (!identity) return;
  const query = `SELECT toString(id) AS id FROM ${remote('database_identity')} ORDER BY recorded_at DESC, id LIMIT 1`;
  const result = await client.query({ query, format: 'JSONEachRow' }).catch((error: Error) => {
    throw new Refused(`The server that is filled cannot read ${source.server.name}: ${error.message}`);
  });
  const [found] = await result.json<{ id: string }>();
  if (found?.id === identity.id) return;
  throw new Refused(`The native address of ${source.server.name} leads to another database than its url.`);
}

/**
 * What the source has not stored yet of the target's partitions must stay in Kafka until the copy is done. All of the source is
 * read, also for a share of it.
 *
 * @throws {Refused}
 */
async function requireHeadroom(
  { source, target, kafka, bandwidth }: PlanOptions,
  client: ClickHouseClient,
): Promise<void> {
  const { config, server } = source;
  const topics = Object.values(topicNames(config));
  const kept = await withAdmin(kafka, (admin) => new TopicRetention(topics).read(admin));
  const lags = await readLag(kafka, config, server.group, target.server.partitions);
  const left = lags.map(({ topic, headroomSeconds }) => {
    const keptMs = kept.get(topic);
    return headroomSeconds ?? (keptMs === undefined ? Number.POSITIVE_INFINITY : keptMs / 1_000);
  });
  const bytes = sumOf((await readBytes(client)).map((table) => table.bytes));
  requireTime({ name: server.name, bytes, bandwidth, headroom: Math.min(...left) });
}

export interface CopyTime {
  /** The name of the source. */
  readonly name: string;
  readonly bytes: number;
  /** Bytes a second at most; 0: no limit. */
  readonly bandwidth: number;
  /** The time until Kafka deletes what the source has not stored yet, in seconds. */
  readonly headroom: number;
}

/** @throws {Refused} when a copy may not end, with time to spare, before Kafka deletes what it needs */
export function requireTime({ name, bytes, bandwidth, headroom }: CopyTime): void {
  const seconds = bytes / Math.min(BYTES_PER_SECOND, bandwidth || BYTES_PER_SECOND);
  if (headroom >= seconds + SPARE_SECONDS) return;
  throw new Refused(
    `The copy may take ${Math.ceil(seconds)} s, and Kafka deletes what ${name} has not stored yet in ` +
      `${Math.floor(headroom)} s: let its writers catch up, or set a longer retention.ms of the topics.`,
  );
}

function differentVersions(source: DatabaseState, target: DatabaseState): CopyPlan['versions'] {
  const [ofSource, ofTarget] = [source.version, target.version];
  if (ofSource === undefined || ofTarget === undefined || ofSource === ofTarget) return undefined;
  return [ofSource, ofTarget];
}

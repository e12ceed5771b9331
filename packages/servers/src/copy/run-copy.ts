import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { migrate, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { ROW_ACCEPTED } from '@sluice/shared/clickhouse/property-versions';
import { Refused } from '@sluice/shared/config/command-line';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { IS_MERGE_SQL, MERGED_USER_SQL } from '@sluice/shared/rows/merged-user';
import { isInRange } from '@sluice/shared/servers/partition-range';
import { Halts } from '@sluice/storage/clickhouse/halts';
import { type DatabaseState, readIdentity, recordState, renewId } from '@sluice/storage/clickhouse/identity';
import { readPartitions, type StoredPosition } from '@sluice/storage/clickhouse/known-partitions';
import { OwnDatabase } from '@sluice/storage/clickhouse/own-database';
import { recordFence } from '@sluice/storage/clickhouse/ownership';
import { inspectPartitions } from '@sluice/storage/kafka/inspect-partitions';
import { type PartitionStart, requireStoppedWriters, rewindGroup } from '@sluice/storage/kafka/stopped-writers';
import { nameOf } from '@sluice/storage/protocol/position';
import type { Kafka } from 'kafkajs';
import { type ConfiguredServer, connectForMigrations, connectTo, ownerOf } from '../state/connected-server.ts';
import { type CopiedSoFar, CopyLog, IS_NEWEST_RUN } from './copy-log.ts';
import { type CopyPlan, readEventPartitions, rowsOf } from './plan-copy.ts';
import type { RemoteTables } from './remote-table.ts';
import { DELETIONS, otherTables, TableCopy } from './table-copy.ts';

/** How long one statement of a copy may take, in milliseconds: it copies a partition of a table. */
const STATEMENT_MS_MAX = 14 * 86_400_000;

/** How far a copy is. */
export interface CopyProgress {
  /** A table, with its partition where it is a part of one. */
  readonly what: string;
  readonly rows: number;
  /** Undefined where it is not known; about so many where a share is copied. */
  readonly rowsExpected: number | undefined;
  /** What was read from the source for it. */
  readonly bytes: number;
  /** Partitions of the table `events`. */
  readonly done: number;
  readonly all: number;
}

export interface RunCopyOptions {
  readonly plan: CopyPlan;
  readonly kafka: Kafka;
  readonly remote: RemoteTables;
  readonly bandwidth: number;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: CopyProgress) => void;
  /** Called before what the target has is changed: from then on it is complete only when the copy is done. */
  readonly onBegin: () => void;
  /** Called with each step that is done, as a short phrase. */
  readonly onStep: (done: string) => void;
}

/** Positions as the source had them. They get the group of the target. */
const STORE_POSITIONS = `
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation
)
SELECT
  {group:String}, position.topic, position.partition, position.next_offset, position.fingerprint,
  position.leader_epoch, 0, 0
FROM (
  SELECT arrayJoin(argMax(positions, recorded_at)) AS position FROM copies WHERE step = 'positions'
)
WHERE true`;

/** Whatever was copied of deleted users is erased, also where the deletion was forgotten meanwhile (find-deleted-rows). */
const ERASE_AGAIN = `
INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
SELECT DISTINCT workspace_id, user_id, deleted, now64(3)
FROM (
  SELECT workspace_id, id AS user_id, if(kind = 'user', toUInt64OrZero(other_id) + 1, version) AS version
  FROM entities WHERE kind IN ('user', 'membership')
  UNION ALL
  SELECT workspace_id, id, ${ROW_ACCEPTED} FROM entity_properties WHERE kind = 'user'
  UNION ALL
  SELECT workspace_id, user_id, version FROM user_sightings
  UNION ALL
  SELECT workspace_id, user_id, version FROM identity_links
  UNION ALL
  SELECT workspace_id, ${MERGED_USER_SQL}, version FROM identity_links WHERE ${IS_MERGE_SQL}
  UNION ALL
  SELECT workspace_id, user_id, version FROM dead_letters
) AS stored
INNER JOIN (
  SELECT workspace_id, user_id, max(version) AS deleted FROM user_deletions GROUP BY workspace_id, user_id
) AS deletions USING (workspace_id, user_id)
WHERE version <= deleted`;

/**
 * Copies a server to another one while everything else runs. It may be broken off at any point, and then goes on where it was
 * when it is run again. Until it is done, the target says that it is being filled: nobody reads it, and its writers wait.
 *
 * @throws {Refused}
 * @throws kafkajs's and ClickHouse's errors
 */
export async function runCopy(options: RunCopyOptions): Promise<void> {
  const { target } = options.plan;
  await using connections = new AsyncDisposableStack();
  const adopt = (client: ClickHouseClient) => connections.adopt(client, () => client.close());
  await migrate(target.config, createLogger('sluice-servers', 'error'));
  const client = adopt(connectForMigrations(target, undefined, STATEMENT_MS_MAX));
  const writer = adopt(connectTo(target, STATEMENT_MS_MAX));
  const { sourceIdentity, source } = options.plan;
  const ofSource = adopt(connectForMigrations(source));
  const log = new CopyLog(client, target.server.database, { name: source.server.name, id: sourceIdentity.id });
  await log.begin();
  try {
    await new Copy(options, log, { client, writer, source: ofSource }).run();
  } finally {
    await log.end();
  }
}

interface Connections {
  /** Logs in at the target, with the account for migrations. */
  readonly client: ClickHouseClient;
  /** Logs in at the target, with the account of a writer. */
  readonly writer: ClickHouseClient;
  readonly source: ClickHouseClient;
}

class Copy {
  readonly #options: RunCopyOptions;
  readonly #log: CopyLog;
  readonly #connections: Connections;
  readonly #tables: TableCopy;
  readonly #group: string;
  /** What is copied at the moment. */
  #current: Omit<CopyProgress, 'rows' | 'bytes'> = { what: '', rowsExpected: undefined, done: 0, all: 0 };

  constructor(options: RunCopyOptions, log: CopyLog, connections: Connections) {
    const { client, writer } = connections;
    const { remote, bandwidth, signal, onProgress } = options;
    this.#options = options;
    this.#log = log;
    this.#connections = connections;
    this.#group = options.plan.target.server.group;
    this.#tables = new TableCopy({
      ...{ client, writer, remote, log, share: options.plan.share, bandwidth, signal },
      onProgress: (progress) => onProgress({ ...this.#current, ...progress }),
    });
  }

  async run(): Promise<void> {
    const { kafka, onStep } = this.#options;
    const migrations = await readMigrations();
    await this.#requireSource();
    const wasFilling = await this.#close();
    const before = wasFilling ? await this.#resumable() : undefined;
    const positions = before?.positions ?? (await this.#startAnew());
    onStep(before ? 'it goes on where it was broken off' : 'positions and deletions of users are copied');
    const events = await this.#copyEvents(before?.events ?? new Map());
    for (const table of otherTables(migrations)) await this.#copyTable(table);
    await this.#insert('erase-again', ERASE_AGAIN);
    onStep('all other tables are copied');
    await this.#requireWhole(events);
    await this.#requireSource();
    await this.#requireInKafka(positions);
    await requireStoppedWriters(kafka, this.#group);
    await this.#open(positions);
  }

  /**
   * Lets nobody read the target or store into it from now on: its state says so, and a writer that froze is fenced. Returns
   * whether the target was being filled before.
   *
   * @throws {Refused} when it has writers
   */
  async #close(): Promise<boolean> {
    const { plan, kafka, onBegin } = this.#options;
    const { client, writer } = this.#connections;
    await new OwnDatabase(writer, ownerOf(plan.target.server)).claim();
    const wasFilling = (await readIdentity(client))?.state === 'filling';
    await requireStoppedWriters(kafka, this.#group);
    onBegin();
    // Before the state: the steps of a copy that was used since then are none of this one.
    if (!wasFilling) await this.#log.record('abandoned');
    await this.#recordState('filling', `${plan.source.server.name} is being copied to it`);
    // A writer that joins later reads the state first.
    await requireStoppedWriters(kafka, this.#group);
    await recordFence(writer, this.#group);
    return wasFilling;
  }

  async #recordState(state: DatabaseState, detail?: string): Promise<void> {
    await this.#log.requireNewest();
    await recordState(this.#connections.client, state, detail, this.#log.queryId(`record-${state}`));
  }

  /** Runs an insert of the newest run. The statement ends in a condition. */
  async #insert(name: string, sql: string, parameters: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.#connections.client.command({
      query: `${sql} AND ${IS_NEWEST_RUN}`,
      query_id: this.#log.queryId(name),
      query_params: { run: this.#log.run, ...parameters },
    });
  }

  /** Returns what is done of a copy that was broken off; `undefined` where there is none, or Kafka has gone on without it. */
  async #resumable(): Promise<CopiedSoFar | undefined> {
    const before = await this.#log.copiedSoFar();
    if (!before) return undefined;
    return (await readGaps(this.#options.kafka, before.positions)).length === 0 ? before : undefined;
  }

  /**
   * Notes how far the source is with the partitions of the target before anything is read from it, and drops what the target
   * has.
   *
   * @throws {Refused} when Kafka has no longer what the source would store next
   */
  async #startAnew(): Promise<readonly StoredPosition[]> {
    const { source, target } = this.#options.plan;
    const { server } = source;
    const known = await readPartitions(this.#connections.source, server.group);
    const positions = [...known.positions.values()].filter(({ partition }) =>
      isInRange(target.server.partitions, partition),
    );
    const gaps = await readGaps(this.#options.kafka, positions);
    if (gaps.length > 0) throw new Refused(`${gaps.join(' ')} ${server.name} lacks it as well: copy another server.`);
    const tables = ['events', ...DELETIONS, ...otherTables(await readMigrations()), 'storing_progress'];
    for (const table of tables) await this.#tables.dropAll(table);
    await renewId(this.#connections.client);
    for (const table of DELETIONS) await this.#copyTable(table);
    await this.#log.record('positions', { positions });
    return positions;
  }

  async #copyTable(table: string): Promise<void> {
    this.#current = { ...this.#current, what: table, rowsExpected: undefined };
    await this.#tables.copyTable(table);
  }

  /** Copies those partitions of the table that are not copied yet, and returns how many rows each of all has. */
  async #copyEvents(before: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
    const { onStep, plan } = this.#options;
    const copied = new Map(before);
    // After the positions: one that comes now holds only what is read from Kafka.
    const partitions = await readEventPartitions(this.#connections.source);
    const left = partitions.filter(({ partition }) => !before.has(partition));
    const all = before.size + left.length;
    for (const { partition, rows: stored } of left) {
      const rowsExpected = rowsOf(stored, plan);
      this.#current = { what: `events ${partition}`, rowsExpected, done: copied.size, all };
      const rows = await this.#tables.copyEvents(partition);
      await this.#log.record('events', { partition, rows });
      copied.set(partition, rows);
      onStep(`events ${partition}: ${rows.toLocaleString('en')} rows, ${copied.size} of ${all} table partitions`);
    }
    this.#current = { ...this.#current, done: copied.size, all };
    return copied;
  }

  /** @throws {Refused} when rows are missing that were copied */
  async #requireWhole(copied: ReadonlyMap<string, number>): Promise<void> {
    for (const [partition, rows] of copied) {
      const stored = await this.#tables.countEvents(partition);
      if (stored === rows) continue;
      await this.#log.record('abandoned');
      throw new Refused(
        `Of ${rows} rows of the table partition ${partition} of events ${stored} are left: something else has changed them. ` +
          'Run the command again: it begins anew.',
      );
    }
  }

  /**
   * At the beginning and at the end: a server that gives messages up is incomplete before it goes on behind them.
   *
   * @throws {Refused} when what is read is not the database any more that was to be copied, or lacks messages
   */
  async #requireSource(): Promise<void> {
    const { source, sourceIdentity } = this.#options.plan;
    const identity = await readIdentity(this.#connections.source);
    if (identity?.id === sourceIdentity.id && identity.state === 'complete') return;
    const { name } = source.server;
    const reason = identity?.id === sourceIdentity.id ? `is ${identity.state}` : 'has another database now';
    throw new Refused(`${name} ${reason}: copy a complete server.`);
  }

  /** @throws {Refused} when Kafka has no longer what the target would read next, such as after a copy that took too long */
  async #requireInKafka(positions: readonly StoredPosition[]): Promise<void> {
    const gaps = await readGaps(this.#options.kafka, positions);
    if (gaps.length === 0) return;
    throw new Refused(`${gaps.join(' ')} Run the command again: it begins anew.`);
  }

  /** Lets the writers of the target go on where the source was. */
  async #open(positions: readonly StoredPosition[]): Promise<void> {
    const { plan, kafka, onStep } = this.#options;
    const { writer } = this.#connections;
    const halts = new Halts(writer, this.#group);
    // Drops with the condition that this is the newest run: the resumption of halts has none.
    await this.#tables.dropAll('writer_positions');
    // Without a chosen offset: the fingerprint of the position stays.
    for (const { topic, partition } of (await readPartitions(writer, this.#group)).halts.values()) {
      await halts.resume(topic, partition);
    }
    await this.#insert('store-positions', STORE_POSITIONS, { group: this.#group });
    await rewindGroup(kafka, this.#group, await readStarts(kafka, plan.target, positions));
    onStep('positions and commits are those of the source when the copy began');
    await this.#recordState('complete');
  }
}

/**
 * Returns why Kafka's logs do not continue these positions, a sentence for each such partition.
 *
 * @throws {Refused} when a partition cannot be read at the moment
 * @throws kafkajs's errors
 */
async function readGaps(kafka: Kafka, positions: readonly StoredPosition[]): Promise<string[]> {
  const partitions: Record<string, number[]> = {};
  for (const { topic, partition } of positions) partitions[topic] = [...(partitions[topic] ?? []), partition];
  const known = new Map(positions.map((position) => [nameOf(position), position]));
  const inspected = await withAdmin(kafka, (admin) => inspectPartitions(admin, undefined, partitions, known));
  if (inspected.length < positions.length) {
    throw new Refused('Some partitions have no leader. Mend the brokers first.');
  }
  return inspected.flatMap(({ inspection }) => (inspection.kind === 'gap' ? [`${inspection.gap.detail}.`] : []));
}

/**
 * Returns where the writers of a server go on, for all of its partitions: they do at the lower one of the stored and the
 * committed offset, so each partition needs a new commit.
 *
 * @throws kafkajs's errors
 */
async function readStarts(
  kafka: Kafka,
  { config, server }: ConfiguredServer,
  positions: readonly StoredPosition[],
): Promise<PartitionStart[]> {
  const topics = Object.values(topicNames(config));
  const stored = new Map(positions.map((position) => [nameOf(position), position.nextOffset]));
  const { topics: known } = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics }));
  return known.flatMap(({ name: topic, partitions }) =>
    partitions
      .map(({ partitionId: partition }) => ({ topic, partition }))
      .filter(({ partition }) => isInRange(server.partitions, partition))
      .map((partition) => ({ ...partition, offset: stored.get(nameOf(partition)) ?? 0n })),
  );
}

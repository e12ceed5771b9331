import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { FAST_PROPERTIES_MAX, fastColumn } from '@sluice/shared/clickhouse/fast-properties';
import { eventKey, type StoredEvent, type Tables, WEEK_US } from '../clickhouse/tables.ts';

/** The rows of each table that the writer stores into: what queries see of them, as sorted lines. */
export type StoredRows = Readonly<Record<string, readonly string[]>>;

const FAST_VALUES = Array.from({ length: FAST_PROPERTIES_MAX }, (_, index) => fastColumn(index + 1)).join();

/** What queries see of each table. Times at which something was stored are left out, other times are numbers. */
const QUERIES = {
  // The one that was stored last hides the others with its key, which ClickHouse removes when it likes.
  events: `SELECT (workspace_id, toUnixTimestamp64Milli(timestamp), toString(uuid), type, event, user_id, anonymous_id, group_id,
      toUnixTimestamp64Micro(received_at), toString(fast_set), [${FAST_VALUES}], _partition_id) AS fields
    FROM events FINAL SETTINGS do_not_merge_across_partitions_select_final = 1`,
  entities: `SELECT (workspace_id, kind, id, other_id, toUnixTimestamp64Milli(min(first_seen_at)),
      toUnixTimestamp64Milli(max(last_seen_at)), max(version)) AS fields
    FROM entities GROUP BY workspace_id, kind, id, other_id`,
  properties: `SELECT (workspace_id, kind, id, property, once_week, max(register).1, toString(max(register).2),
      toString(max(register).3), max(register).4) AS fields
    FROM entity_properties GROUP BY workspace_id, kind, id, property, once_week`,
  sightings: 'SELECT DISTINCT (workspace_id, user_id, version, group_id) AS fields FROM user_sightings',
  deletions:
    'SELECT (workspace_id, user_id, max(version)) AS fields FROM user_deletions GROUP BY workspace_id, user_id',
  pendingDeletions:
    'SELECT (workspace_id, user_id, max(version)) AS fields FROM pending_deletions GROUP BY workspace_id, user_id',
  identityDeletions: `SELECT (workspace_id, user_id, version, max(settled_at) > toDateTime64(0, 3)) AS fields
    FROM identity_deletions GROUP BY workspace_id, user_id, version`,
  links: 'SELECT DISTINCT (workspace_id, anonymous_id, user_id, version, said) AS fields FROM identity_links',
  positions: 'SELECT (topic, partition, next_offset, fingerprint, leader_epoch) AS fields FROM writer_positions FINAL',
  halts: `SELECT (topic, partition, reason, detail, toString(first_offset), toString(last_offset), isNotNull(resumed_at)) AS fields
    FROM writer_halts FINAL`,
  gaps: `SELECT (topic, partition, reason, detail, toString(first_offset), toString(last_offset)) AS fields
    FROM log_gaps`,
  epochs: 'SELECT DISTINCT (incarnation, generation, leader_id) AS fields FROM writer_epochs',
  endedBatches: 'SELECT tuple(uniqExact(id)) AS fields FROM ended_batches',
  groups: 'SELECT DISTINCT tuple(group_id) AS fields FROM writer_groups',
  topicPartitions: 'SELECT DISTINCT (topic, partitions) AS fields FROM topic_partitions',
  // The rest of the reason is ClickHouse's message.
  deadLetters: `SELECT (kind, topic, partition, offset, line, row, extract(reason, '^[A-Z_]+'),
      isNotNull(replayed_at)) AS fields
    FROM dead_letters FINAL`,
} as const;

/** All of them in one statement. */
const QUERY = Object.entries(QUERIES)
  .map(([table, query]) => `SELECT '${table}' AS table, toJSONString(fields) AS line FROM (${query})`)
  .join(' UNION ALL ');

/** Reads the rows of a real ClickHouse. @throws ClickHouse's errors */
export async function storedRows(client: ClickHouseClient): Promise<StoredRows> {
  const result = await client.query({ query: QUERY, format: 'JSONEachRow' });
  const found = await result.json<{ readonly table: string; readonly line: string }>();
  const byTable = Map.groupBy(found, ({ table }) => table);
  return Object.fromEntries(
    Object.keys(QUERIES).map((table) => [
      table,
      linesOf((byTable.get(table) ?? []).map(({ line }) => JSON.parse(line))),
    ]),
  );
}

/** Returns the same of the tables of the simulator. */
export function simulatedRows(tables: Tables): StoredRows {
  const rows: Readonly<Record<keyof typeof QUERIES, readonly unknown[][]>> = {
    events: mergedEvents(tables).map((row) => [
      ...[row.workspace_id, row.timestamp, row.uuid, row.type ?? 'track', row.event, row.user_id],
      ...[row.anonymous_id ?? '', row.group_id, row.received_at],
      ...[row.fast.set, row.fast.values, row.month],
    ]),
    entities: [...tables.entities.values()].map(
      ({ workspace, kind, id, otherId, firstSeenMs, lastSeenMs, version }) => [
        workspace,
        kind,
        id,
        otherId,
        firstSeenMs,
        lastSeenMs,
        version,
      ],
    ),
    properties: [...tables.properties.values()].map(({ workspace, kind, id, onceWeek, change }) => [
      ...[workspace, kind, id, change.property ?? '', onceWeek, registerVersion(change.version, onceWeek)],
      ...[change.change_id, change.operation === 'remove' ? 'remove' : 'set', change.value ?? ''],
    ]),
    sightings: tables.sightings.map(({ workspace, user, version, group }) => [workspace, user, version, group]),
    deletions: [...tables.deletions].map(([user, version]) => [...user.split('\0'), version]),
    pendingDeletions: [...Map.groupBy(tables.pendingDeletions, ({ workspace, user }) => `${workspace}\0${user}`)].map(
      ([user, all]) => [...user.split('\0'), Math.max(...all.map(({ version }) => version))],
    ),
    identityDeletions: [...tables.identityDeletions.values()].map(({ workspace, user, version, settledAtMs }) => [
      ...[workspace, user, version, settledAtMs > 0 ? 1 : 0],
    ]),
    links: [...tables.links.values()].map(({ workspace, visitor, user, version, isSaid }) => [
      ...[workspace, visitor, user, version, isSaid ? 1 : 0],
    ]),
    positions: [...tables.positions.values()].map(({ topic, partition, nextOffset, fingerprint, leaderEpoch }) => [
      ...[topic, partition, nextOffset, fingerprint, leaderEpoch],
    ]),
    halts: [...tables.halts.values()].map((halt) => [
      ...[halt.topic, halt.partition, halt.reason, halt.detail, halt.firstOffset, halt.lastOffset],
      halt.isResumed ? 1 : 0,
    ]),
    gaps: tables.gaps.map(({ topic, partition, reason, detail, firstOffset, lastOffset }) => [
      ...[topic, partition, reason, detail, firstOffset, lastOffset],
    ]),
    epochs: tables.epochs.map(({ incarnation, generation, leaderId }) => [incarnation, generation, leaderId]),
    endedBatches: [[tables.ended.size]],
    groups: [...tables.groups].map((group) => [group]),
    topicPartitions: [...tables.topicPartitions].map(([topic, partitions]) => [topic, partitions]),
    deadLetters: [...tables.deadLetters.values()].map((deadLetter) => [
      ...[deadLetter.kind, deadLetter.topic, deadLetter.partition, Number(deadLetter.offset), deadLetter.line],
      ...[deadLetter.row, /^[A-Z_]+/.exec(deadLetter.reason)?.[0] ?? '', deadLetter.isReplayed ? 1 : 0],
    ]),
  };
  return Object.fromEntries(Object.entries(rows).map(([table, all]) => [table, linesOf(all)]));
}

function registerVersion(accepted: number, onceWeek: number): number {
  if (onceWeek === 0) return accepted;
  return onceWeek === 1 ? 2_650_000_000_000_000 - accepted : accepted % WEEK_US;
}

/** Returns the events as ClickHouse has them after it has merged each partition: the last one with each key. */
export function mergedEvents({ events }: Tables): StoredEvent[] {
  return [...new Map(events.map((event) => [`${event.month}\0${eventKey(event)}`, event])).values()];
}

function linesOf(rows: readonly unknown[]): string[] {
  return [...new Set(rows.map((row) => JSON.stringify(row)))].sort();
}

import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { NO_DOWNGRADE, readMigrations, recordedOrNone, unknownNames } from '@sluice/shared/clickhouse/migrate';
import { type Identity, readIdentity } from '@sluice/storage/clickhouse/identity';
import { readRetention } from '@sluice/storage/clickhouse/retention-settings';

/** What the database of a server says. */
export interface DatabaseState {
  /** The version of ClickHouse; undefined where the database does not exist yet. */
  readonly version: string | undefined;
  /** How many migrations of this version are missing. */
  readonly missing: number;
  /** Migrations of a newer version. */
  readonly unknown: readonly string[];
  /** Whether this version cannot work with the database any more. */
  readonly isTooNew: boolean;
  /** Undefined before a writer has recorded it, and while migrations are missing that it needs. */
  readonly identity: Identity | undefined;
  /** Undefined while no writer has recorded its progress. */
  readonly progress: Progress | undefined;
  readonly haltedPartitions: number;
  /** Over how many partitions the rows of each topic are spread. */
  readonly topicPartitions: ReadonlyMap<string, number>;
  /** For how many days the events of workspaces are kept; those of the empty name are all others. */
  readonly retention: ReadonlyMap<string, number>;
}

export interface Progress {
  /** How long ago a writer has recorded it, in milliseconds. */
  readonly ageMs: number;
  /** For how long the server has been behind Kafka, in milliseconds; some seconds where it is up to date. */
  readonly behindMs: number;
  /** Everything that Kafka had appended before is stored, in milliseconds since 1970. */
  readonly throughMs: number;
}

const PROGRESS = `
SELECT
  toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(recorded_at) AS ageMs,
  toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(least(through, recorded_at)) AS behindMs,
  toUnixTimestamp64Milli(least(through, recorded_at)) AS throughMs
FROM storing_progress ORDER BY recorded_at DESC LIMIT 1`;

const HALTS = `
SELECT count() AS halts FROM writer_halts FINAL
WHERE resumed_at IS NULL AND group_id IN (SELECT group_id FROM writer_groups)`;

const TOPIC_PARTITIONS = 'SELECT topic, max(partitions) AS count FROM topic_partitions GROUP BY topic ORDER BY topic';

/** Reads what the database of a server says. It changes nothing. @throws ClickHouse's errors */
export async function readDatabaseState(client: ClickHouseClient): Promise<DatabaseState> {
  const [wanted, recorded] = await Promise.all([readMigrations(), recordedOrNone(client)]);
  // Nothing can be asked in a database that does not exist.
  const version = recorded && (await rows<{ version: string }>(client, 'SELECT version() AS version'))[0]?.version;
  const applied = recorded ?? new Map();
  const unknown = unknownNames(wanted, applied);
  const missing = wanted.filter(({ number }) => !applied.has(number)).length;
  const common = { version, missing, unknown, isTooNew: unknown.some((name) => name.endsWith(NO_DOWNGRADE)) };
  if (missing > 0) return { ...common, ...NOTHING };
  const [identity, [progress], [halts], topics, retention] = await Promise.all([
    readIdentity(client),
    rows<Progress>(client, PROGRESS),
    rows<{ halts: number }>(client, HALTS),
    rows<{ topic: string; count: number }>(client, TOPIC_PARTITIONS),
    readRetention(client),
  ]);
  return {
    ...common,
    ...{ identity, progress, haltedPartitions: halts?.halts ?? 0 },
    topicPartitions: new Map(topics.map(({ topic, count }) => [topic, count])),
    retention: new Map(retention.filter(({ days }) => days > 0).map(({ workspace, days }) => [workspace, days])),
  };
}

/** Returns what the database of a server says, or a sentence that says why it does not answer. */
export async function stateOrReason(name: string, client: ClickHouseClient): Promise<DatabaseState | string> {
  return await readDatabaseState(client).catch(({ message, code }: NodeJS.ErrnoException) => {
    return `${name} does not answer: ${message || code}.`;
  });
}

export function isKnown(state: DatabaseState | string): state is DatabaseState {
  return typeof state !== 'string';
}

/** What can be said while tables are missing. */
const NOTHING = {
  identity: undefined,
  progress: undefined,
  haltedPartitions: 0,
  topicPartitions: new Map<string, number>(),
  retention: new Map<string, number>(),
} as const;

async function rows<Row>(client: ClickHouseClient, query: string): Promise<Row[]> {
  return await (await client.query({ query, format: 'JSONEachRow' })).json<Row>();
}

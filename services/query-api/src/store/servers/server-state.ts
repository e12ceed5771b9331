import { NO_DOWNGRADE } from '@sluice/shared/clickhouse/migrate';
import type { Row } from '../clickhouse-reader.ts';
import type { Sql } from '../sql.ts';

/** How many workspaces with pending deletions a process remembers. */
const WORKSPACES_MAX = 10_000;

/** How many recent deletions of one workspace are read at once. */
const RECENT_OF_WORKSPACE_MAX = 5_000;

/** What a database says of itself, as writers record it. */
export interface RecordedIdentity {
  readonly id: string;
  /** The name of its server. */
  readonly server: string;
  /** The partitions that it stores: `all`, or a range such as `0-23`. */
  readonly partitions: string;
  readonly state: 'complete' | 'filling' | 'incomplete';
}

export interface RecentDeletion {
  readonly workspace: string;
  readonly user: string;
  /** In microseconds since 1970. */
  readonly version: number;
}

/** How a replica is. */
export interface Replication {
  /** Its tables that take no rows, since it has no session of Keeper. */
  readonly readOnlyTables: number;
  /** What it has still to fetch, to merge or to change. */
  readonly queue: number;
}

/** What a poll reads of a server, all at one moment. */
export interface ServerState {
  /** Undefined before a writer has recorded it. */
  readonly identity: RecordedIdentity | undefined;
  /** How many of the migrations that this version knows it has. */
  readonly migrations: number;
  /** Whether a newer version has changed it so that this version cannot read it. */
  readonly isTooNew: boolean;
  /**
   * For how long it has been behind Kafka, by its own clock, in milliseconds; some seconds where it is up to date. Infinite
   * while no writer has recorded its progress. Of a replica, also for how long it has lacked rows that another one has.
   */
  readonly behindMs: number;
  /** What a replica has to catch up with; undefined where tables are not replicated. */
  readonly replication: Replication | undefined;
  /** Over how many partitions rows are spread; undefined before a writer has recorded it. */
  readonly partitionCount: number | undefined;
  /** The workspaces with pending deletions; `undefined` when there are too many to remember. */
  readonly deleting: ReadonlySet<string> | undefined;
  /** For each workspace, the newest of the deletions that the server has stored lately. */
  readonly recentDeletions: readonly RecentDeletion[];
  /** Of workspaces with more of them: for how long the oldest one that was read is stored, in milliseconds. */
  readonly unlistedMs: ReadonlyMap<string, number>;
  /** For how many days the events of workspaces are kept, by {@link ALL_OTHERS} as well. */
  readonly retentionDays: ReadonlyMap<string, number>;
}

/**
 * Returns the query of a poll.
 *
 * @param recentMs what counts as lately, in milliseconds
 * @param migrations how many this version knows
 * @param isReplica whether the tables are replicated
 */
export function stateQuery(recentMs: number, migrations: number, isReplica: boolean): Sql {
  return {
    sql: `SELECT
  (
    SELECT groupArray((toString(id), server, partitions, state))
    FROM (SELECT id, server, partitions, state FROM database_identity ORDER BY recorded_at DESC, id LIMIT 1)
  ),
  (SELECT uniqExactIf(number, number <= {migrations:UInt32}) FROM schema_migrations),
  (SELECT countIf(number > {migrations:UInt32} AND endsWith(name, {no_downgrade:String})) > 0 FROM schema_migrations),
  (
    SELECT groupArray(toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(least(through, recorded_at)))
    FROM (SELECT through, recorded_at FROM storing_progress ORDER BY recorded_at DESC LIMIT 1)
  ),
  (SELECT max(partitions) FROM topic_partitions),
  (SELECT groupUniqArray(${WORKSPACES_MAX + 1})(workspace_id) FROM pending_deletions),
  (
    SELECT groupArray((
      workspace_id,
      arrayMap(deletion -> (deletion.2, deletion.3), listed),
      if(deletions > length(listed), toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(listed[-1].1), -1)
    ))
    FROM (
      SELECT
        workspace_id,
        count() AS deletions,
        arraySlice(arrayReverseSort(groupArray((stored, user_id, newest))), 1, ${RECENT_OF_WORKSPACE_MAX}) AS listed
      FROM (
        SELECT workspace_id, user_id, max(version) AS newest, max(stored_at) AS stored
        FROM pending_deletions
        WHERE ${RECENT}
        GROUP BY workspace_id, user_id
      )${isReplica ? KNOWN : ''}
      GROUP BY workspace_id
    )
  ),
  (SELECT groupArray((workspace_id, days)) FROM retention FINAL WHERE days > 0)${isReplica ? REPLICATION : ''}`,
    params: { recent_ms: recentMs, migrations, no_downgrade: NO_DOWNGRADE },
  };
}

const RECENT = 'stored_at > now64(3) - toIntervalMillisecond({recent_ms:UInt64})';

/**
 * A replica may get the row of `pending_deletions` before that of `user_deletions`, which reads of users ask. Until it has both, the
 * deletion is missing there.
 */
const KNOWN = ` AS pending
      INNER JOIN (
        SELECT workspace_id, user_id, max(version) AS known
        FROM user_deletions
        WHERE (workspace_id, user_id) IN (SELECT workspace_id, user_id FROM pending_deletions WHERE ${RECENT})
        GROUP BY workspace_id, user_id
      ) AS deleted USING (workspace_id, user_id)
      WHERE known >= newest`;

/**
 * What is recorded of a replica's progress shows that it is cut off from Keeper: it does not get the newest. This shows that it has not
 * fetched yet what it knows of.
 */
const REPLICATION = `,
  (
    SELECT (max(absolute_delay), countIf(is_readonly OR is_session_expired), sum(queue_size))
    FROM system.replicas WHERE database = currentDatabase()
  )`;

type StateRow = readonly [
  identity: readonly [id: string, server: string, partitions: string, state: RecordedIdentity['state']][],
  migrations: number,
  isTooNew: number,
  behindMs: readonly number[],
  partitionCount: number,
  deleting: readonly string[],
  recent: readonly [workspace: string, deletions: readonly [user: string, version: number][], unlistedMs: number][],
  retention: readonly [workspace: string, days: number][],
  replication?: readonly [delaySeconds: number, readOnlyTables: number, queue: number],
];

/** Reads the row of {@link stateQuery}. */
export function asServerState(row: Row): ServerState {
  const [[identity], migrations, isTooNew, [behindMs], partitionCount, deleting, recent, retention, replication] =
    row as unknown as StateRow;
  const [delaySeconds, readOnlyTables, queue] = replication ?? [0, 0, 0];
  const [id = '', server = '', partitions = '', state = 'complete'] = identity ?? [];
  return {
    identity: identity && { id, server, partitions, state },
    migrations,
    isTooNew: isTooNew === 1,
    behindMs: Math.max(0, behindMs ?? Number.POSITIVE_INFINITY, 1_000 * delaySeconds),
    replication: replication && { readOnlyTables, queue },
    partitionCount: partitionCount || undefined,
    deleting: deleting.length > WORKSPACES_MAX ? undefined : new Set(deleting),
    recentDeletions: recent.flatMap(([workspace, deletions]) =>
      deletions.map(([user, version]) => ({ workspace, user, version })),
    ),
    unlistedMs: new Map(recent.flatMap(([workspace, , ms]) => (ms < 0 ? [] : [[workspace, ms] as const]))),
    retentionDays: new Map(retention),
  };
}

import { FAST_COLUMNS } from '@sluice/shared/clickhouse/fast-properties';
import { acceptedSql } from '@sluice/shared/clickhouse/property-versions';
import { PERSON_SQL } from '@sluice/shared/rows/deleted-person';
import { IS_MERGE_SQL, MERGED_USER_SQL } from '@sluice/shared/rows/merged-user';
import { COLD_VOLUME_AWAY } from '@sluice/storage/protocol/dead-letter';

/** A table that two servers have to have alike, as it is compared. */
export interface ComparedTable {
  readonly name: string;
  /**
   * A SELECT of its rows, each with `workspace`, `user` (as a deletion names the user or visitor; empty where none concerns it), `key`, `content`
   * (a hash), `newest` (when the last of what it shows was received) and `accepted` (a deletion hides it up to there), both in
   * microseconds. Parameters: those of {@link Cut}, and `partition` of the table `events`.
   */
  readonly rows: string;
  /**
   * Whether a row shows all that was ever received of it. Then a server that is ahead no longer knows what the other one still
   * shows, so that rows of the last seconds always differ, and have to be told from the rest.
   */
  readonly isFolded: boolean;
}

/** Temporary tables of deletions that are not everywhere yet have this name. */
export const DELETIONS_LEFT_OUT = 'deletions_left_out';

/** Hashes of all who were ever deleted. */
const DELETED_USERS = `
          SELECT cityHash64(toString(workspace_id), user_id) FROM user_deletions
          UNION ALL
          SELECT cityHash64(workspace_id, user_id) FROM ${DELETIONS_LEFT_OUT}`;

/** The hash of an event as it was accepted: what is declared as fast, and since when, is a matter of each server. */
export const EVENT_CONTENT = `cityHash64(* EXCEPT (${FAST_COLUMNS.join(', ')}))`;

/** A partition of the table `events`. */
export const EVENTS: ComparedTable = {
  name: 'events',
  rows: `
    SELECT
      toString(workspace_id) AS workspace, ${PERSON_SQL} AS user, (timestamp, uuid) AS key, ${EVENT_CONTENT} AS content,
      toUnixTimestamp64Micro(received_at) AS newest, toUnixTimestamp64Micro(received_at) AS accepted
    FROM events
    WHERE _partition_id = {partition:String}
      AND toUnixTimestamp64Milli(timestamp)
        >= transform(toString(workspace_id), {workspaces:Array(String)}, {keptFromMs:Array(Int64)}, {othersKeptFromMs:Int64})`,
  isFolded: false,
};

/**
 * A deletion with a version in the past may have come after the log time that is compared. Its server knows when it was stored
 * as long as it is not erased.
 */
export const DELETIONS: ComparedTable = {
  name: 'user_deletions',
  rows: `
    SELECT
      toString(workspace_id) AS workspace, user_id AS user, tuple(user_id) AS key, version AS content,
      greatest(toInt64(version), stored) AS newest, toInt64(version) AS accepted
    FROM (
      SELECT workspace_id, user_id, max(version) AS version FROM user_deletions GROUP BY workspace_id, user_id
    ) AS deletions
    LEFT JOIN (
      SELECT workspace_id, user_id, toUnixTimestamp64Micro(toDateTime64(max(stored_at), 6)) AS stored
      FROM pending_deletions GROUP BY workspace_id, user_id
    ) AS pending USING (workspace_id, user_id)`,
  isFolded: true,
};

/**
 * Users and organizations, and the pairs of both. After which deletion a row of a user begins depends on what its writer knew,
 * and when users who came back were seen is computed (docs/design/decisions/0058-rows-after-deletions.md). Times of an
 * organization may be those of events of deleted users, so of an organization only that it is there is compared.
 */
const ENTITIES: ComparedTable = {
  name: 'entities',
  rows: `
    SELECT
      toString(workspace_id) AS workspace,
      multiIf(kind = 'organization', '', kind = 'member', other, id) AS user,
      (toString(kind), id, other) AS key,
      multiIf(
        kind = 'organization', 0,
        cityHash64(toString(workspace_id), multiIf(kind = 'member', other, id)) IN (${DELETED_USERS}), cityHash64(newest_version),
        cityHash64(newest_version, first, last)
      ) AS content,
      toInt64(newest_version) AS newest,
      toInt64(newest_version) AS accepted
    FROM (
      SELECT
        workspace_id, kind, id, if(kind = 'user', '', other_id) AS other, max(version) AS newest_version,
        min(first_seen_at) AS first, max(last_seen_at) AS last
      FROM entities GROUP BY workspace_id, kind, id, other
    )`,
  isFolded: true,
};

const ACCEPTED = acceptedSql('newest_register.version', 'once_week');

/** What was set once first depends, of users who were deleted, on what is erased by now, and does not count for them. */
const PROPERTIES: ComparedTable = {
  name: 'entity_properties',
  rows: `
    SELECT
      toString(workspace_id) AS workspace, if(kind = 'user', id, '') AS user,
      (toString(kind), id, property, once_week) AS key,
      cityHash64(newest_register) AS content, toInt64(${ACCEPTED}) AS newest, toInt64(${ACCEPTED}) AS accepted
    FROM (
      SELECT workspace_id, kind, id, property, once_week, max(register) AS newest_register
      FROM entity_properties GROUP BY workspace_id, kind, id, property, once_week
    )
    WHERE once_week != 1 OR kind != 'user' OR cityHash64(toString(workspace_id), id) NOT IN (${DELETED_USERS})`,
  isFolded: true,
};

const SIGHTINGS: ComparedTable = {
  name: 'user_sightings',
  rows: `
    SELECT
      toString(workspace_id) AS workspace, user_id AS user, (user_id, version, group_id) AS key, 0 AS content,
      toInt64(version) AS newest, toInt64(version) AS accepted
    FROM user_sightings GROUP BY workspace_id, user_id, version, group_id`,
  isFolded: false,
};

/** A deletion of a merged user hides what says whom it became, as that of the other one does. */
const LINKS: ComparedTable = {
  name: 'identity_links',
  rows: `
    SELECT
      toString(workspace_id) AS workspace,
      if(
        ${IS_MERGE_SQL} AND cityHash64(toString(workspace_id), ${MERGED_USER_SQL}) IN (${DELETED_USERS}),
        ${MERGED_USER_SQL},
        user_id
      ) AS user, (anonymous_id, user_id, version, said) AS key, 0 AS content,
      toInt64(version) AS newest, toInt64(version) AS accepted
    FROM identity_links GROUP BY workspace_id, anonymous_id, user_id, version, said`,
  isFolded: false,
};

/**
 * Late events that wait for a cold volume are left out: only a server whose volume is away has them. Equal ids have equal rows; place and reason are those of the copy that a server has read. Some rows do not say when they
 * were received.
 */
const DEAD_LETTERS: ComparedTable = {
  name: 'dead_letters',
  rows: `
    SELECT
      workspace, user, tuple(id) AS key, 0 AS content,
      if(received > 0, toInt64(received), toUnixTimestamp64Micro(toDateTime64(recorded, 6))) AS newest,
      toInt64(received) AS accepted
    FROM (
      SELECT
        id, any(workspace_id) AS workspace, any(user_id) AS user, max(version) AS received, min(recorded_at) AS recorded,
        any(kind) AS of_kind
      FROM dead_letters
      WHERE reason != '${COLD_VOLUME_AWAY}'
      GROUP BY id
    )
    WHERE of_kind != 'rejected' OR newest >= {rejectedFrom:Int64}`,
  isFolded: false,
};

/** The tables that are compared after deletions and events, each as a whole. */
export const OTHER_TABLES: readonly ComparedTable[] = [ENTITIES, PROPERTIES, SIGHTINGS, LINKS, DEAD_LETTERS];

/** The tables of which `--mend` makes both the same. */
export const MENDED_TABLES: readonly ComparedTable[] = [EVENTS, ENTITIES];

/** What both servers leave out, as parameters of all statements. */
export interface Cut {
  /** What was received later, in microseconds since 1970. */
  readonly until: number;
  /** Events before these times, in milliseconds, by workspace; of all others before `othersKeptFromMs`. */
  readonly workspaces: readonly string[];
  readonly keptFromMs: readonly number[];
  readonly othersKeptFromMs: number;
  /** Rejected calls that were received before, in microseconds: they expire when ClickHouse merges. */
  readonly rejectedFrom: number;
}

/** Rows with the last deletion of their user that is left out; 0 without one. */
const withDeletions = ({ rows }: ComparedTable) => `
  (${rows}) AS compared
  LEFT JOIN (
    SELECT workspace_id, user_id, max(version) AS deleted FROM ${DELETIONS_LEFT_OUT} GROUP BY workspace_id, user_id
  ) AS deletions ON deletions.workspace_id = compared.workspace AND deletions.user_id = compared.user`;

const BUCKET = 'toUInt32(cityHash64(compared.workspace, compared.key) % {buckets:UInt32})';

/** Returns a statement for the number and the sum of the hashes of all rows of each bucket of keys, in any order. */
export function checksumsOf(table: ComparedTable): string {
  return `
SELECT
  ${BUCKET} AS bucket, count() AS rows,
  toString(sum(cityHash64(compared.workspace, compared.key, compared.content))) AS checksum
FROM ${withDeletions(table)}
WHERE compared.newest <= {until:Int64} AND (deletions.deleted = 0 OR compared.accepted > toInt64(deletions.deleted))
GROUP BY bucket`;
}

/** Returns a statement for all rows of some buckets, also those that are left out. */
export function rowsOf(table: ComparedTable): string {
  return `
SELECT
  compared.workspace AS workspace, compared.user AS user, compared.key AS key, toString(compared.content) AS content,
  compared.newest AS newest, compared.accepted AS accepted, toInt64(deletions.deleted) AS deleted
FROM ${withDeletions(table)}
WHERE ${BUCKET} IN {chosen:Array(UInt32)}`;
}

import { deletedVisitorsSql } from '@sluice/shared/clickhouse/identities';
import { DELETED_BY_FACT_SQL, IS_MERGE_SQL, MERGED_USER_SQL } from '@sluice/shared/rows/merged-user';
import { filling, type TemporaryTable } from '@sluice/storage/clickhouse/statement';
import { readStatements, type Statement } from '@sluice/storage/clickhouse/statements';

/** The statements that erase deleted users and expired events, fill columns, and keep old events on the cold volume, by their names. */
const WRITTEN = readStatements(new URL('./erasure.sql', import.meta.url), [
  'find-due-erasures',
  'find-deleted-rows',
  'find-events-of-visitors',
  'erase-events',
  'erase-events-of-visitors',
  'erase-properties',
  'erase-sightings',
  'erase-links',
  'find-mixed-users',
  'store-returned-users',
  'erase-entities',
  'erase-dead-letters',
  'forget-erased',
  'find-unsettled-deletions',
  'settle-deletions',
  'find-expired-events',
  'find-expired-events-of-others',
  'erase-expired-events',
  'read-declared-properties',
  'find-unfilled-columns',
  'read-events-policy',
  'find-moves',
  'find-misplaced-parts',
  'move-to-cold-volume',
  'move-back',
  'find-waiting-events',
  'stage-waiting-events',
  'look-up-waiting-events',
  'read-waiting-events',
  'mark-sent-events',
  'remove-sent-states',
  'remove-sent-events',
]);

/** The deletions of a pass. */
const UNSETTLED = `
  SELECT deletion.1 AS workspace_id, deletion.2 AS user_id, deletion.3 AS version
  FROM (
    SELECT arrayJoin(arrayZip({workspaces:Array(String)}, {users:Array(String)}, {versions:Array(UInt64)})) AS deletion
  )`;

/**
 * The visitors that were those of the users of a pass, and who was merged into these, unless they are deleted already. `visitor` names one as
 * deletions do. A merged user is until that very deletion is settled, since whose visitors follow depends on its version, also where a later one
 * is known; `isKnown` says that it is stored.
 */
const FIND_DELETED_VISITORS: Statement = {
  name: 'find-deleted-visitors',
  sql: `
SELECT
  visitors.workspace_id AS workspace_id, visitors.deleted_user AS user_id, visitors.version AS version, visitors.user_id AS visitor,
  stored.deleted_version >= visitors.version AND merged.version > 0 AS isKnown
FROM (${deletedVisitorsSql({
    links: 'identity_links',
    deletions: 'identity_deletions',
    unsettled: UNSETTLED,
    ofUsers: 'user_id IN {users:Array(String)}',
  })}
) AS visitors
LEFT JOIN (
  SELECT workspace_id, user_id, max(user_deletions.version) AS deleted_version
  FROM user_deletions
  WHERE (workspace_id, user_id) IN (
    SELECT workspace_id, ${DELETED_BY_FACT_SQL} FROM identity_links WHERE user_id IN {users:Array(String)}
  )
  GROUP BY workspace_id, user_id
) AS stored ON stored.workspace_id = visitors.workspace_id AND stored.user_id = visitors.user_id
LEFT JOIN (
  SELECT workspace_id, user_id, version, max(identity_deletions.settled_at) AS settled
  FROM identity_deletions
  WHERE (workspace_id, user_id) IN (
    SELECT workspace_id, ${MERGED_USER_SQL} FROM identity_links WHERE user_id IN {users:Array(String)} AND ${IS_MERGE_SQL}
  )
  GROUP BY workspace_id, user_id, version
) AS merged
  ON merged.workspace_id = visitors.workspace_id AND merged.user_id = visitors.user_id AND merged.version = visitors.version
WHERE stored.deleted_version < visitors.version
  OR NOT startsWith(visitors.user_id, '\\xEF\\xBF\\xBF') AND merged.settled = toDateTime64(0, 3, 'UTC')
ORDER BY version, workspace_id, user_id, visitor`,
};

/** Late events of a month that wait for the cold volume. */
const WAITING: TemporaryTable = {
  name: 'waiting',
  columns: {
    ...{ id: 'String', workspace: 'String', time: "DateTime64(3, 'UTC')", uuid: 'UUID' },
    read_at: "DateTime64(6, 'UTC')",
  },
};

export const STATEMENTS = {
  ...WRITTEN,
  'find-deleted-visitors': FIND_DELETED_VISITORS,
  'stage-waiting-events': filling(WRITTEN['stage-waiting-events'], WAITING),
} as const;

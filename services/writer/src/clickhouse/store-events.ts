import { STORED_EVENT_COLUMNS } from './staging-tables.ts';
import type { Statement } from './statement.ts';

/**
 * Stores the staged events, without those that were accepted before their user was deleted. find-repeats and drop-repeats
 * have left those that are not stored yet, so a batch may be repeated whatever became of the last attempt.
 * Fails when a newer epoch is recorded, because its writers own the partitions now. They end an insert that began before
 * they recorded their epoch. So nobody else stores these rows between the look-up and the end of this insert.
 */
export const STORE_EVENTS: Statement = {
  name: 'store-events',
  sql: `
INSERT INTO events (${STORED_EVENT_COLUMNS})
WITH
  -- Read here and not before: this insert must know every deletion that may be erased before the insert ends. A scalar,
  -- so that ClickHouse reads it once, and without a join, which would cost a small batch more than its rows.
  (
    SELECT (groupArray(user), groupArray(deleted_version))
    FROM (
      SELECT concat(workspace_id, '\\0', user_id) AS user, max(version) AS deleted_version
      FROM user_deletions
      PREWHERE user_hash IN (SELECT cityHash64(user_id) FROM staged_events)
      WHERE user_id IN (SELECT user_id FROM staged_events)
      GROUP BY user
      SETTINGS use_index_for_in_with_subqueries_max_values = 1000
    )
  ) AS deletions
SELECT ${STORED_EVENT_COLUMNS}
FROM staged_events
WHERE throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0
  -- 0 for a user who was not deleted. The first element is nobody: transform takes no empty arrays.
  AND toUnixTimestamp64Micro(received_at) > transform(
    concat(workspace_id, '\\0', user_id), arrayPushFront(deletions.1, ''), arrayPushFront(deletions.2, 0), toUInt64(0)
  )`,
};

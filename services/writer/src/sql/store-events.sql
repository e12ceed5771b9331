-- Stores the events that are not stored yet, so a batch may be repeated whatever became of the last attempt. It leaves
-- out events that were accepted before their user was deleted. A stored event that such a deletion hides does not count
-- as stored: an event that is sent again after the deletion is new.
-- Fails when a newer epoch is recorded, because its writers own the partitions now. They end an insert that began before
-- they recorded their epoch, so two inserts of the same rows never run at the same time.
-- The lookup of stored keys uses only the beginning of the sorting key: with the uuid it takes twice as long. PREWHERE
-- filters by the timestamp alone first, which makes a batch of scattered history three times as fast.
INSERT INTO events (
  workspace_id, timestamp, uuid, type, event, user_id, group_id, anonymous_id, instance_id,
  properties, context, traits, received_at
)
WITH
  -- Not the table of find-deletions, which is older: this insert must know every deletion that may be erased before the
  -- insert ends. A scalar subquery, so that ClickHouse runs it once.
  (
    SELECT groupArray((workspace_id, user_id, deleted_at))
    FROM (
      SELECT workspace_id, user_id, fromUnixTimestamp64Micro(toInt64(max(version)), 'UTC') AS deleted_at
      FROM user_deletions
      PREWHERE user_hash IN (SELECT cityHash64(user_id) FROM staged_events)
      WHERE user_id IN (SELECT user_id FROM staged_events)
      GROUP BY workspace_id, user_id
      SETTINGS use_index_for_in_with_subqueries_max_values = 1000
    )
  ) AS found_deletions,
  current_deletions AS (
    SELECT deletion.1 AS workspace_id, deletion.2 AS user_id, deletion.3 AS deleted_at
    FROM (SELECT arrayJoin(found_deletions) AS deletion)
  )
SELECT
  workspace_id, timestamp, uuid, type, event, user_id, group_id, anonymous_id, instance_id,
  properties, context, traits, received_at
FROM staged_events
WHERE throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0
  AND (workspace_id, timestamp, uuid) NOT IN (SELECT workspace_id, timestamp, uuid FROM repeats)
  AND (workspace_id, timestamp, uuid, received_at) NOT IN (
    SELECT workspace_id, timestamp, uuid, received_at
    FROM staged_events
    INNER JOIN current_deletions USING (workspace_id, user_id)
    WHERE received_at <= deleted_at
  )
  AND (workspace_id, timestamp, uuid) NOT IN (
    SELECT workspace_id, timestamp, uuid
    FROM (
      SELECT workspace_id, timestamp, uuid, user_id, received_at
      FROM events
      PREWHERE timestamp IN (SELECT timestamp FROM staged_events)
      WHERE (workspace_id, timestamp) IN (SELECT workspace_id, timestamp FROM staged_events)
    ) AS candidates
    LEFT JOIN current_deletions USING (workspace_id, user_id)
    WHERE received_at > deleted_at
  )
LIMIT 1 BY workspace_id, timestamp, uuid

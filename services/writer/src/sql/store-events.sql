-- Stores what is not stored yet, so that a batch may be run again, whatever became of it the last time. What was
-- accepted before its user was deleted is left out. A stored event that such a deletion hides does not count as
-- stored: what is sent again after the deletion is new.
-- The stored keys are looked up by the beginning of the sorting key alone: with the uuid it takes twice as long. Of
-- what that index leaves, the timestamp alone decides first: a batch of scattered history is three times as fast so.
-- Fails when a newer generation of writers has begun: its members own the partitions now. An insert that began before
-- that was recorded is killed by them, so no two inserts of the same rows ever run side by side.
INSERT INTO events (
  workspace_id, timestamp, uuid, type, event, user_id, group_id, anonymous_id, instance_id,
  properties, context, traits, received_at
)
WITH
  -- Not those that were found before: an insert that begins now must know every deletion that may be erased before it
  -- ends. A scalar, so that it is looked up once.
  (
    SELECT groupArray((workspace_id, user_id, deleted_at))
    FROM (
      SELECT workspace_id, user_id, fromUnixTimestamp64Micro(toInt64(max(version)), 'UTC') AS deleted_at
      FROM user_deletions
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
    (SELECT max((incarnation, generation)) FROM writer_fences WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer generation of writers has begun'
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

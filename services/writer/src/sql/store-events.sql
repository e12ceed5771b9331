-- Stores what is not stored yet, so that a batch may be run again, whatever became of it the last time. What was
-- accepted before its user was deleted is left out. A stored event that such a deletion hides does not count as
-- stored: what is sent again after the deletion is new.
-- The stored keys are looked up by the beginning of the sorting key alone: with the uuid it takes twice as long.
-- Fails when a newer generation of writers has begun: its members own the partitions now. An insert that began before
-- that was recorded is killed by them, so no two inserts of the same rows ever run side by side.
INSERT INTO events (
  workspace_id, timestamp, uuid, type, event, user_id, group_id, anonymous_id, instance_id,
  properties, context, traits, received_at
)
WITH deletions AS (
  SELECT workspace_id, user_id, fromUnixTimestamp64Micro(toInt64(max(version)), 'UTC') AS deleted_at
  FROM user_deletions
  WHERE (workspace_id, user_id) IN (SELECT workspace_id, user_id FROM staged_events)
  GROUP BY workspace_id, user_id
)
SELECT
  workspace_id, timestamp, uuid, type, event, user_id, group_id, anonymous_id, instance_id,
  properties, context, traits, received_at
FROM staged_events
LEFT JOIN deletions USING (workspace_id, user_id)
WHERE received_at > deleted_at
  AND throwIf(
    (SELECT max((incarnation, generation)) FROM writer_fences WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer generation of writers has begun'
  ) = 0
  AND (workspace_id, timestamp, uuid) NOT IN (SELECT workspace_id, timestamp, uuid FROM repeats)
  AND (workspace_id, timestamp, uuid) NOT IN (
    SELECT workspace_id, timestamp, uuid
    FROM (
      SELECT workspace_id, timestamp, uuid, user_id, received_at
      FROM events
      WHERE (workspace_id, timestamp) IN (SELECT workspace_id, timestamp FROM staged_events)
    ) AS candidates
    LEFT JOIN deletions USING (workspace_id, user_id)
    WHERE received_at > deleted_at
  )
LIMIT 1 BY workspace_id, timestamp, uuid

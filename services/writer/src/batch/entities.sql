-- What a batch stores of users and organizations. store-statements.ts has what is generated.

-- name: store-seen-in-deleted-events
-- An event shows that its organization exists, even if the event's user was deleted meanwhile. Otherwise the
-- organization would depend on whether the event or the deletion was stored first.
INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
SELECT
  staged_events.workspace_id,
  'organization',
  group_id,
  min(timestamp),
  max(timestamp),
  max(toUnixTimestamp64Micro(received_at))
FROM staged_events
INNER JOIN deletions ON deletions.workspace_id = staged_events.workspace_id AND deletions.user_id = person
WHERE group_id != '' AND toUnixTimestamp64Micro(received_at) <= deleted_version
GROUP BY staged_events.workspace_id, group_id

-- name: store-deletions
-- Before all other inserts, so that they see the deletions of this batch.
INSERT INTO user_deletions (workspace_id, user_id, version)
SELECT workspace_id, id, max(version)
FROM staged_changes
WHERE kind = 'user' AND operation = 'delete'
GROUP BY workspace_id, id

-- name: store-pending-deletions
-- After store-deletions has ended: an insert that does not know the deletion began before `stored_at`.
INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
SELECT workspace_id, id, max(version), now64(3)
FROM staged_changes
WHERE kind = 'user' AND operation = 'delete'
GROUP BY workspace_id, id

-- name: store-sightings
INSERT INTO user_sightings (workspace_id, user_id, version, group_id)
SELECT DISTINCT workspace_id, id, version, group_id
FROM staged_changes
WHERE kind = 'user' AND operation = 'seen'

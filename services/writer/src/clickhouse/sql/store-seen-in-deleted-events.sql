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

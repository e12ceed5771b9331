-- Runs before store-events: after a crash between the two, both run again, and no stored event lacks its user.
INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
SELECT
  workspace_id,
  entity.1 AS kind,
  entity.2 AS id,
  min(timestamp),
  max(timestamp),
  max(toUnixTimestamp64Micro(received_at))
FROM (
  SELECT workspace_id, timestamp, received_at, arrayJoin([('user', user_id), ('organization', group_id)]) AS entity
  FROM staged_events
)
WHERE id != ''
GROUP BY workspace_id, kind, id

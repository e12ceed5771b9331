-- Users, organizations, and which of them belong together: 0013-memberships.sql explains the kinds. Repeats were dropped
-- from the staged events, so a user or an organization that only a repeat names is not stored.
-- Runs before store-events: after a crash between the two, both run again, and no stored event lacks its user.
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
SELECT
  workspace_id,
  entity.1 AS kind,
  entity.2 AS id,
  entity.3 AS other_id,
  min(first_seen_at),
  max(last_seen_at),
  max(version)
FROM (
  SELECT
    workspace_id,
    min(timestamp) AS first_seen_at,
    max(timestamp) AS last_seen_at,
    max(toUnixTimestamp64Micro(received_at)) AS version,
    arrayJoin(multiIf(
      user_id = '', [('organization', group_id, '')],
      group_id = '', [('user', user_id, '')],
      [
        ('user', user_id, ''), ('organization', group_id, ''),
        ('membership', user_id, group_id), ('member', group_id, user_id)
      ]
    )) AS entity
  FROM staged_events
  WHERE user_id != '' OR group_id != ''
  GROUP BY workspace_id, user_id, group_id
)
GROUP BY workspace_id, kind, id, other_id

-- Users, organizations, and which of them belong together, as in store-seen-in-events. The row of a user names the
-- organization of its submission.
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
SELECT
  workspace_id,
  entity.1 AS entity_kind,
  entity.2 AS entity_id,
  entity.3 AS other_id,
  fromUnixTimestamp64Milli(toInt64(intDiv(min(version), 1000)), 'UTC'),
  fromUnixTimestamp64Milli(toInt64(intDiv(max(version), 1000)), 'UTC'),
  max(staged_changes.version)
FROM staged_changes
ARRAY JOIN if(
  kind = 'user' AND group_id != '',
  [('user', id, ''), ('membership', id, group_id), ('member', group_id, id)],
  [(toString(kind), id, '')]
) AS entity
WHERE operation = 'seen'
GROUP BY workspace_id, entity_kind, entity_id, other_id

INSERT INTO entity_properties (workspace_id, kind, id, property, register)
SELECT
  workspace_id,
  kind,
  id,
  property,
  max((version, change_id, operation, value)::Tuple(
    version UInt64, change_id UUID, operation Enum8('set' = 1, 'remove' = 2), value String
  ))
FROM staged_changes
LEFT JOIN (
  SELECT workspace_id, 'user' AS kind, user_id AS id, max(version) AS deleted
  FROM user_deletions
  WHERE (workspace_id, user_id) IN (SELECT workspace_id, id FROM staged_changes WHERE kind = 'user')
  GROUP BY workspace_id, user_id
) AS deletions USING (workspace_id, kind, id)
WHERE operation IN ('set', 'remove') AND version > deleted
GROUP BY workspace_id, kind, id, property

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
LEFT JOIN change_deletions USING (workspace_id, kind, id)
WHERE operation IN ('set', 'remove') AND version > deleted_version
GROUP BY workspace_id, kind, id, property

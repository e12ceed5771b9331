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
WHERE operation IN ('set', 'remove')
GROUP BY workspace_id, kind, id, property

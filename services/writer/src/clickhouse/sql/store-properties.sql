-- A register keeps the highest version. `set_once` counts only while nothing else changes the property, and the first one
-- wins: its register has a version before 2000, which is below all others, and the higher the earlier it was accepted.
-- property-versions.ts turns it back.
INSERT INTO entity_properties (workspace_id, kind, id, property, register)
SELECT
  workspace_id,
  kind,
  id,
  property,
  max((
    if(operation = 'set_once', toUInt64(2650000000000000 - version), version),
    change_id,
    if(operation = 'set_once', 'set', operation),
    value
  )::Tuple(
    version UInt64, change_id UUID, operation Enum8('set' = 1, 'remove' = 2), value String
  ))
FROM staged_changes
WHERE operation IN ('set', 'set_once', 'remove')
GROUP BY workspace_id, kind, id, property

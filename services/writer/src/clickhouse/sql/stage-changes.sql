CREATE TEMPORARY TABLE staged_changes (
  workspace_id LowCardinality(String),
  kind LowCardinality(String),
  id String,
  operation LowCardinality(String),
  version UInt64,
  change_id UUID,
  property String,
  value String,
  group_id String,
  CONSTRAINT complete CHECK workspace_id != '' AND id != '' AND version > 0,
  CONSTRAINT known_kind CHECK kind IN ('user', 'organization'),
  CONSTRAINT known_operation CHECK operation IN ('seen', 'set', 'remove', 'delete')
)
ENGINE = Memory

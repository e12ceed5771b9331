CREATE TEMPORARY TABLE staged_changes (
  workspace_id LowCardinality(String),
  kind LowCardinality(String),
  id String,
  operation LowCardinality(String),
  version UInt64,
  change_id UUID,
  property String,
  value String
)
ENGINE = Memory

CREATE TEMPORARY TABLE repeats (
  workspace_id LowCardinality(String),
  timestamp DateTime64(3, 'UTC'),
  uuid UUID
)
ENGINE = Memory

CREATE TEMPORARY TABLE staged_events (
  workspace_id LowCardinality(String),
  timestamp DateTime64(3, 'UTC'),
  uuid UUID,
  type LowCardinality(String) DEFAULT 'track',
  event LowCardinality(String),
  user_id String,
  group_id String,
  anonymous_id String,
  instance_id String,
  properties String DEFAULT '{}',
  context String DEFAULT '{}',
  traits String DEFAULT '{}',
  received_at DateTime64(6, 'UTC'),
  stamped UInt8
)
ENGINE = Memory

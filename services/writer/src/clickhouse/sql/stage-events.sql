-- Plain strings: parsing rows into LowCardinality columns takes 50 % longer.
CREATE TEMPORARY TABLE staged_events (
  workspace_id String,
  timestamp DateTime64(3, 'UTC'),
  uuid UUID,
  type String DEFAULT 'track',
  event String,
  user_id String,
  group_id String,
  anonymous_id String,
  instance_id String,
  properties String DEFAULT '{}',
  context String DEFAULT '{}',
  traits String DEFAULT '{}',
  received_at DateTime64(6, 'UTC'),
  stamped UInt8,
  CONSTRAINT complete CHECK workspace_id != '' AND event != '' AND received_at > '2000-01-01',
  CONSTRAINT timestamp_in_range CHECK timestamp >= '2000-01-01' AND timestamp < '2100-01-01'
)
ENGINE = Memory

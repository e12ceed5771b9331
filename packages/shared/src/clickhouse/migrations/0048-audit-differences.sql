-- The first hundred rows of an audit that are missing, invented or stored twice.
CREATE TABLE IF NOT EXISTS audit_differences (
  audit_id UUID,
  workspace_id LowCardinality(String),
  hour DateTime('UTC'),
  kind LowCardinality(String),
  -- 'missing', 'invented' or 'duplicate'
  difference LowCardinality(String),
  -- The uuid of an event; of a change, its user or organization and its property as JSON text.
  key String,
  topic LowCardinality(String),
  partition Nullable(UInt32),
  offset Nullable(Int64),
  -- The row's index in its message, counted from 0.
  line Nullable(UInt32),
  -- What was looked at, in a sentence.
  detail String,
  recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (audit_id, workspace_id, hour)
-- Keys of changes name users, also those who are deleted meanwhile.
TTL toDateTime(recorded_at) + INTERVAL 30 DAY
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- Kafka partitions that the writers do not store until an operator resumes them. The newest row of a partition counts;
-- the partition is halted while `resumed_at` is null.
CREATE TABLE IF NOT EXISTS writer_halts (
  group_id String,
  topic String,
  partition UInt32,
  reason LowCardinality(String),
  detail String,
  first_offset Nullable(Int64),
  last_offset Nullable(Int64),
  halted_at DateTime64(3, 'UTC'),
  resumed_at Nullable(DateTime64(3, 'UTC')),
  resume_offset Nullable(Int64),
  state_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY (group_id, topic, partition)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

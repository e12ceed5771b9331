-- Messages of the log that operators gave up: a halted partition was resumed behind them (docs/design/decisions/0109-books-that-balance.md).
-- The halts keep only the newest of each partition.
CREATE TABLE IF NOT EXISTS given_up_messages (
  group_id String,
  topic LowCardinality(String),
  partition UInt32,
  -- The first and the last offset that was given up, both included.
  first_offset Int64,
  last_offset Int64,
  given_up_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (group_id, topic, partition, first_offset, last_offset)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

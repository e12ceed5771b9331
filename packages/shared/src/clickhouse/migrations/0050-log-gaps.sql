-- Gaps between Kafka's log and what is stored, for which writers halted partitions (docs/design/decisions/0109-books-that-balance.md).
-- The halts keep only the newest of each partition. They belong to the rows, and not to a group of writers: copies have them too.
CREATE TABLE IF NOT EXISTS log_gaps (
  topic LowCardinality(String),
  partition UInt32,
  reason LowCardinality(String),
  detail String,
  first_offset Nullable(Int64),
  last_offset Nullable(Int64),
  noticed_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partition, noticed_at)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

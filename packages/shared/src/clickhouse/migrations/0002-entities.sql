-- One row per user or organization: when it was first and last seen, and the highest version of any change of it.
-- A deleted user exists again when this version is above the version of the deletion.
CREATE TABLE IF NOT EXISTS entities (
  workspace_id LowCardinality(String),
  kind LowCardinality(String),
  id String,
  first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  version SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, kind, id)
SETTINGS
  -- Single rows are cheap to read: 0001-events.sql explains it.
  index_granularity = 128,
  min_compress_block_size = 2048,
  max_compress_block_size = 4096,
  -- Durability: 0001-events.sql explains these settings.
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

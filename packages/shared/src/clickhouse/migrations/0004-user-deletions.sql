-- Deleted users: everything of the user that was accepted up to `version` is deleted. The rows stay for ever, so that
-- rows which arrive later are recognised as deleted. Every look-up names its users: the table may be large.
CREATE TABLE IF NOT EXISTS user_deletions (
  workspace_id LowCardinality(String),
  user_id String,
  version SimpleAggregateFunction(max, UInt64),
  -- A third of the cost of comparing identifiers, where the writer looks up the thousands of users of a large batch.
  user_hash UInt64 MATERIALIZED cityHash64(user_id)
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, user_id)
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

-- Deleted users. Queries hide everything that was accepted up to `version`; the writer erases it in the background.
-- Nothing of it is left once `erased_version` has reached `version`. The row stays, so that rows which arrive later are
-- recognised as deleted.
CREATE TABLE IF NOT EXISTS user_deletions (
  workspace_id LowCardinality(String),
  user_id String,
  version SimpleAggregateFunction(max, UInt64),
  stored_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  erased_version SimpleAggregateFunction(max, UInt64)
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

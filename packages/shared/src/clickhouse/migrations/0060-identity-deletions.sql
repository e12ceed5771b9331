-- Each time that a user was deleted. `user_deletions` has the last one alone; whose a visitor was at one deletion depends on those before.
-- `settled_at`: since when the visitors are deleted, too, that were the user's then; 1970: not yet. The rows stay for ever, as those of
-- `user_deletions` do.
CREATE TABLE IF NOT EXISTS identity_deletions (
  workspace_id LowCardinality(String),
  user_id String,
  version UInt64,
  settled_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, user_id, version)
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

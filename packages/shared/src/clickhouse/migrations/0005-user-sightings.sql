-- Submissions without events that named a user. `entities` keeps only the first and the last of them; this table keeps
-- all, because for a user who came back after a deletion only the sightings after the deletion count.
CREATE TABLE IF NOT EXISTS user_sightings (
  workspace_id LowCardinality(String),
  user_id String,
  version UInt64
)
ENGINE = ReplacingMergeTree
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

-- The deletions that are not erased yet. Queries hide every event of the user that was accepted up to `version`.
-- An erasure removes its rows, so the table holds what is pending and not what ever was.
CREATE TABLE IF NOT EXISTS pending_deletions (
  workspace_id LowCardinality(String),
  user_id String,
  version SimpleAggregateFunction(max, UInt64),
  stored_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, user_id)
-- Durability: 0001-events.sql explains these settings. A deletion that is forgotten here would no longer be hidden.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

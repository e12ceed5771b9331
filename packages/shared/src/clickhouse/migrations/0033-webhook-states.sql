-- Whether each webhook is delivered: 'active', or 'paused' with the reason. The newest row counts; without one it is active.
CREATE TABLE IF NOT EXISTS webhook_states (
  webhook_id UUID,
  state LowCardinality(String),
  reason String,
  since DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(since)
ORDER BY webhook_id
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- For how many days the events of each workspace are kept. The newest row of a workspace counts. Its days are 0 where the
-- workspace has no retention of its own: then that of the empty name counts, which the writers record (EVENTS_RETENTION_DAYS),
-- and without it events are kept for ever.
CREATE TABLE IF NOT EXISTS retention (
  workspace_id String,
  days UInt32,
  set_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(set_at)
ORDER BY workspace_id
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

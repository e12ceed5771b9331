-- The consumer group of the writers that store into this database. The first writer records it. A writer of another group
-- stores nothing: both would store every row, at the same time, and neither would see what the other one is storing.
CREATE TABLE IF NOT EXISTS writer_groups (
  group_id String,
  recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY group_id
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

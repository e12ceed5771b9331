-- What comparisons of this database with other servers have found (`sluice servers compare`), for metrics.
CREATE TABLE IF NOT EXISTS server_comparisons (
  compared_at DateTime64(3, 'UTC'),
  -- The name of the other server.
  other String,
  -- What was received later was left out.
  through DateTime64(6, 'UTC'),
  -- How many partitions of the table `events` were compared, and how many events of this database.
  months UInt32,
  event_count UInt64,
  -- The tables that differ.
  differing Array(String)
)
ENGINE = MergeTree
ORDER BY compared_at
-- A server that is gone is forgotten.
TTL toDateTime(compared_at) + INTERVAL 90 DAY
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

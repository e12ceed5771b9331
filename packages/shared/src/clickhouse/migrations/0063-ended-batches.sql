-- Attempts at a batch that have failed, where any server may run a statement: whatever was sent for one of these and arrives later stores
-- nothing (docs/design/decisions/0127-one-address.md).
CREATE TABLE IF NOT EXISTS ended_batches (
  id UUID,
  ended_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY id
-- Much longer than a request may be under way.
TTL toDateTime(ended_at) + INTERVAL 7 DAY
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

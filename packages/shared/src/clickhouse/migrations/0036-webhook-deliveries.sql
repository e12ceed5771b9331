-- The last 100 attempts to deliver each webhook, and its last tests: an attempt takes the slot of the one 100 before.
CREATE TABLE IF NOT EXISTS webhook_deliveries (
  webhook_id UUID,
  slot UInt8,
  at DateTime64(3, 'UTC'),
  message_id String,
  -- 'event', 'events' or 'test'.
  type LowCardinality(String),
  events UInt32,
  attempt UInt32,
  -- The status of the response; 0 without one.
  status UInt16,
  duration_ms UInt32,
  error String
)
ENGINE = ReplacingMergeTree(at)
ORDER BY (webhook_id, slot)
TTL toDateTime(at) + INTERVAL 30 DAY
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

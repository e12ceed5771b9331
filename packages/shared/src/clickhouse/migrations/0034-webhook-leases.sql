-- Which instance of query-api delivers each webhook. The highest epoch counts: whoever claimed it alone has the webhook until
-- `expires_at`, by the clock of ClickHouse (docs/design/decisions/0063-webhooks.md). The webhook of zeros stands for the
-- instances themselves: each that delivers has a row there.
CREATE TABLE IF NOT EXISTS webhook_leases (
  webhook_id UUID,
  epoch UInt32,
  holder String,
  lease_ms UInt32,
  recorded_at DateTime64(6, 'UTC') DEFAULT now64(6),
  expires_at DateTime64(3, 'UTC') DEFAULT now64(3) + toIntervalMillisecond(lease_ms)
)
ENGINE = ReplacingMergeTree(recorded_at)
ORDER BY (webhook_id, epoch, holder)
-- The epoch of a webhook that nobody has delivered for a day is that of its position.
TTL toDateTime(recorded_at) + INTERVAL 1 DAY
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- How far each webhook is delivered: a position of GET /events/stream. The row of the highest epoch counts, and of these the
-- one with the highest sequence, so an instance that lost its lease changes nothing any more.
CREATE TABLE IF NOT EXISTS webhook_positions (
  webhook_id UUID,
  epoch UInt32,
  -- Counts the rows of an epoch.
  sequence UInt32,
  position String,
  -- The position at the end of the delivery that is under way, if it has to have the same events after a restart.
  sending_to String,
  -- The failed attempts since the last delivery, and since when.
  attempts UInt32,
  failing_since DateTime64(3, 'UTC'),
  -- Numbers the lines of the log of deliveries.
  log_lines UInt64,
  version UInt64 DEFAULT bitShiftLeft(toUInt64(epoch), 32) + sequence,
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(version)
ORDER BY webhook_id
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

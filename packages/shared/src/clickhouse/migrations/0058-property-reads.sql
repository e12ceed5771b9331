-- What reports have read of the text of properties (docs/design/decisions/0113-fast-properties.md): of each workspace, day and process of
-- query-api a row, with the properties for which most was read. The newest row has the numbers of the whole day.
CREATE TABLE IF NOT EXISTS console_property_reads (
  workspace_id String,
  day Date,
  process UUID,
  names Array(String),
  -- For each name: how many statements have read it, and its share of what they read, in bytes.
  reads Array(UInt64),
  bytes Array(UInt64),
  stored_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(stored_at)
ORDER BY (workspace_id, day, process)
TTL day + toIntervalDay(9)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

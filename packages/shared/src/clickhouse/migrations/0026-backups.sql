-- The backups of this database. The newest row of a backup counts; it is complete when `finished_at` is not null.
-- A backup has its own row in it, as it was when the backup began: it says from which positions on Kafka has to be read
-- again after a restore (docs/design/decisions/0055-backup-and-restore.md).
CREATE TABLE IF NOT EXISTS backups (
  id UUID,
  started_at DateTime64(6, 'UTC'),
  finished_at Nullable(DateTime64(6, 'UTC')),
  -- A directory or an address, without credentials.
  destination String,
  bytes UInt64,
  sluice_version String,
  -- The number of the newest migration that the database had.
  migration UInt32,
  group_id String,
  -- The topics, and over how many partitions the rows of each are spread.
  topics Array(Tuple(topic String, partitions UInt32)),
  -- The rows of writer_positions.
  positions Array(Tuple(
    topic String, partition UInt32, next_offset Int64, fingerprint String, leader_epoch Int32
  )),
  state_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY id
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- Whose this database is, and what it has: its server's name in the file of servers (empty without one), the consumer group
-- and the partitions of its writers, which never change, and its state. The newest row counts; each has all of it.
-- `id` tells the database from all others, also from one that has its name and its group. Writers commit it as the metadata
-- of their offsets. Two that start at the same time may record two ids: it has both then.
-- `state`: 'complete', 'filling' (rows are being copied into it) or 'incomplete' (messages were given up).
CREATE TABLE IF NOT EXISTS database_identity (
  id UUID,
  server String,
  group_id String,
  partitions String,
  state LowCardinality(String),
  detail String,
  recorded_at DateTime64(6, 'UTC')
)
ENGINE = MergeTree
ORDER BY recorded_at
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

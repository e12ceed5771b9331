-- How far a group of writers has stored each Kafka partition. The newest row of a partition counts.
-- An offset alone does not show whether the log is still the one that was read. `fingerprint` does: it identifies the
-- record before `next_offset`. It is empty when an operator chose the offset.
CREATE TABLE IF NOT EXISTS writer_positions (
  group_id String,
  topic String,
  partition UInt32,
  next_offset Int64,
  fingerprint String,
  leader_epoch Int32,
  incarnation UInt32,
  generation UInt32,
  stored_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(stored_at)
ORDER BY (group_id, topic, partition)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- Up to where a group of writers has stored each partition of Kafka. An offset alone does not tell that the log is still
-- the one that was read: the fingerprint of the record before `next_offset` does. It is empty where an operator chose
-- the offset. The newest row of a partition counts.
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
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

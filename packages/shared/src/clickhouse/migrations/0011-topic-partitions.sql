-- Over how many Kafka partitions the rows of each topic are spread. The first writer records it. A writer with another
-- KAFKA_PARTITIONS stores nothing: repeats would come through other partitions than their originals.
CREATE TABLE IF NOT EXISTS topic_partitions (
  topic String,
  partitions UInt32,
  recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partitions)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

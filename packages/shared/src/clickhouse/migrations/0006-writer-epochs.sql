-- The epochs of each group of writers. The newest one owns the partitions: inserts of older epochs fail (fenced).
CREATE TABLE IF NOT EXISTS writer_epochs (
  group_id String,
  incarnation UInt32,
  generation UInt32,
  recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (group_id, incarnation, generation)
-- Durability: 0001-events.sql explains these settings. A forgotten epoch would let a fenced writer store rows again.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- The generations of each group of writers that have begun. An insert of an older generation stores nothing.
CREATE TABLE IF NOT EXISTS writer_fences (
  group_id String,
  incarnation UInt32,
  generation UInt32,
  recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree
ORDER BY (group_id, incarnation, generation)

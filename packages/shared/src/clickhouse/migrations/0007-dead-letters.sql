-- Rows that could not be stored, byte for byte. `id` is made from the kind and the row, so that a row which fails again
-- is the same letter. The newest state counts: read with FINAL.
CREATE TABLE IF NOT EXISTS dead_letters (
  id String,
  state_at DateTime64(6, 'UTC') DEFAULT now64(6),
  recorded_at DateTime64(3, 'UTC') DEFAULT now64(3),
  replayed_at Nullable(DateTime64(3, 'UTC')),
  kind LowCardinality(String),
  format LowCardinality(String),
  topic LowCardinality(String),
  partition UInt32,
  offset Int64,
  line UInt32,
  reason String,
  row String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY id

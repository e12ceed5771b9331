-- Values of properties that a workspace has declared as fast, each as JSON text (docs/design/decisions/0113-fast-properties.md).
-- Which property a column has follows from `fast_set` of the same row, whose names `console_fast_properties` keeps; 0: the row
-- has none. '': the event lacks the property. '?': the text of `properties` says what the value is.
-- With so many columns ClickHouse would merge large parts column by column. They go on being merged row by row, as they were.
ALTER TABLE events
  ADD COLUMN IF NOT EXISTS fast_set UInt64,
  ADD COLUMN IF NOT EXISTS fast_1 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_2 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_3 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_4 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_5 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_6 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_7 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_8 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_9 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_10 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_11 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_12 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_13 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_14 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_15 LowCardinality(String),
  ADD COLUMN IF NOT EXISTS fast_16 LowCardinality(String),
  MODIFY SETTING enable_vertical_merge_algorithm = 0

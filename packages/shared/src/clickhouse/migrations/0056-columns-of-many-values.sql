-- Reports read fast properties from columns where rows say that these have them, and from the text of all others. By the index ClickHouse
-- leaves out what has none of the others. Parts get it as they are written, merged and filled.
-- Half of the columns become plain, for properties with many different values, such as amounts: of these, a dictionary takes more time to
-- read than the values themselves, and more bytes (docs/design/decisions/0113-fast-properties.md).
-- Nobody waits for older parts to be rewritten: reads convert what they find.
ALTER TABLE events
  ADD INDEX IF NOT EXISTS fast_set_values fast_set TYPE set(64) GRANULARITY 64,
  MODIFY COLUMN fast_9 String,
  MODIFY COLUMN fast_10 String,
  MODIFY COLUMN fast_11 String,
  MODIFY COLUMN fast_12 String,
  MODIFY COLUMN fast_13 String,
  MODIFY COLUMN fast_14 String,
  MODIFY COLUMN fast_15 String,
  MODIFY COLUMN fast_16 String
SETTINGS alter_sync = 0

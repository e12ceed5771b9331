-- Rows that ClickHouse cannot store, byte for byte. `id` is a hash of the kind and the row, so a row that fails again is
-- the same dead letter. The newest state of a dead letter counts: read with FINAL.
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
  row String CODEC(ZSTD(3)),
  -- The user that the row names and the version of the row, so that a deletion of the user erases the dead letter too.
  -- They are read from the JSON, or with a regular expression where the row is not valid JSON. They are empty or 0 when
  -- the row does not say. A message that the writer cannot read at all may hold many rows, so it names no user.
  workspace_id String MATERIALIZED if(
    isValidJSON(row),
    JSONExtractString(row, 'workspace_id'),
    JSONExtractString(concat('[', extract(row, '"workspace_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1)
  ),
  user_id String MATERIALIZED multiIf(
    format != '1' OR position(trimRight(row), '\n') > 0,
    '',
    kind = 'events' AND isValidJSON(row),
    JSONExtractString(row, 'user_id'),
    kind = 'events',
    JSONExtractString(concat('[', extract(row, '"user_id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    kind = 'changes' AND isValidJSON(row),
    if(JSONExtractString(row, 'kind') = 'user', JSONExtractString(row, 'id'), ''),
    kind = 'changes' AND position(row, '"kind":"user"') > 0,
    JSONExtractString(concat('[', extract(row, '"id":("(?:[^"\\\\]|\\\\.)*")'), ']'), 1),
    ''
  ),
  version UInt64 MATERIALIZED if(
    isValidJSON(row),
    JSONExtractUInt(row, if(kind = 'events', 'received_at', 'version')),
    toUInt64OrZero(extract(row, '"(?:received_at|version)":(\\d+)'))
  )
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY id
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

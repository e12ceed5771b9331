-- One row per event. The writer stores each key (workspace_id, timestamp, uuid) once, so queries need no FINAL. The
-- ReplacingMergeTree is a second line of defence: a merge would remove a repeat.
-- toUInt128 orders UUIDs as their text does; the type UUID orders them differently.
-- An identifier that the producer did not send is the empty string. JSON objects are kept as the text that came.
CREATE TABLE IF NOT EXISTS events (
  workspace_id LowCardinality(String),
  timestamp DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  uuid UUID,
  type LowCardinality(String) DEFAULT 'track',
  event LowCardinality(String),
  user_id String,
  group_id String,
  anonymous_id String,
  instance_id String,
  properties String DEFAULT '{}',
  context String DEFAULT '{}',
  traits String DEFAULT '{}',
  received_at DateTime64(6, 'UTC') CODEC(Delta, LZ4),
  INDEX user_id_text user_id TYPE text(tokenizer = 'array'),
  INDEX group_id_text group_id TYPE text(tokenizer = 'array'),
  INDEX anonymous_id_text anonymous_id TYPE text(tokenizer = 'array'),
  INDEX instance_id_text instance_id TYPE text(tokenizer = 'array'),
  INDEX event_text event TYPE text(tokenizer = 'array'),
  -- The last six digits have at most 16 million values. Of a billion events 60 have the same ones.
  INDEX uuid_text substring(toString(uuid), 31) TYPE text(tokenizer = 'array'),
  -- Names with their values as they stand in the text, at any depth: `"plan":"pro"`.
  INDEX properties_text splitByChar(',', translate(properties, '{}[]', ',,,,')) TYPE text(tokenizer = 'array')
)
ENGINE = ReplacingMergeTree
-- By month, but by year for events that arrived more than 90 days late. An insert creates one part per partition: a
-- batch of history that is scattered over 25 years creates some 30 parts instead of 300.
PARTITION BY if(toDate(received_at) - toDate(timestamp) > 90, toYear(timestamp), toYYYYMM(timestamp))
ORDER BY (workspace_id, timestamp, toUInt128(uuid))
SETTINGS
  -- Small granules of small blocks make single rows cheap to read: the writer looks up late events, and queries read
  -- the rows of a page that lie far apart.
  index_granularity = 128,
  min_compress_block_size = 2048,
  max_compress_block_size = 4096,
  -- A partition that has got no rows for 35 days is merged into one part: a query looks into every part that could hold
  -- a row. It is merged as a whole or not at all, so it is rewritten at most once in 35 days.
  min_age_to_force_merge_seconds = 3024000,
  min_age_to_force_merge_on_partition_only = 1,
  -- Durability, the same for every table that the writer inserts into. ClickHouse confirms an insert when its bytes are
  -- on the disk: the writer then commits its offsets, and Kafka does not send the rows again after a power loss.
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  -- Merges sync as well. Otherwise a merged part could replace synced parts before it is on the disk itself.
  min_rows_to_fsync_after_merge = 1,
  -- 64 MiB, twice the largest batch: an insert that could fill the disk is refused before it begins.
  min_free_disk_bytes_to_perform_insert = 67108864

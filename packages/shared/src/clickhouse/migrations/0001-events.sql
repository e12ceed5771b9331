-- One row an event. The writer stores a key (workspace_id, timestamp, uuid) once, so that reading needs no FINAL; the
-- engine would merge a repeat away all the same. toUInt128 orders UUIDs as their text does, which the type itself
-- does not. An identifier that was not given is the empty string. JSON objects are kept as the text that came.
CREATE TABLE IF NOT EXISTS events (
  workspace_id LowCardinality(String),
  timestamp DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  uuid UUID,
  type LowCardinality(String) DEFAULT 'track',
  event LowCardinality(String),
  user_id String CODEC(ZSTD(1)),
  group_id String CODEC(ZSTD(1)),
  anonymous_id String CODEC(ZSTD(1)),
  instance_id String CODEC(ZSTD(1)),
  properties String DEFAULT '{}' CODEC(ZSTD(1)),
  context String DEFAULT '{}' CODEC(ZSTD(1)),
  traits String DEFAULT '{}' CODEC(ZSTD(1)),
  received_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
  INDEX user_id_bloom user_id TYPE bloom_filter GRANULARITY 1,
  INDEX uuid_bloom uuid TYPE bloom_filter GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(timestamp)
ORDER BY (workspace_id, timestamp, toUInt128(uuid))
-- Small, since single rows are looked up: late events by the writer, few among many by queries.
SETTINGS index_granularity = 1024

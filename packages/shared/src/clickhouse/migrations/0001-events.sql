-- One row an event. The writer stores a key (workspace_id, timestamp, uuid) once, so that reading needs no FINAL; the
-- engine would merge a repeat away all the same. toUInt128 orders UUIDs as their text does, which the type itself
-- does not. An identifier that was not given is the empty string. JSON objects are kept as the text that came.
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
  -- The last five digits: nearly as good as all for finding one, and there are a million of them at most.
  INDEX uuid_text substring(toString(uuid), 32) TYPE text(tokenizer = 'array'),
  -- Names with their values as they stand in the text, at any depth: `"plan":"pro"`.
  INDEX properties_text splitByChar(',', translate(properties, '{}[]', ',,,,')) TYPE text(tokenizer = 'array')
)
ENGINE = ReplacingMergeTree
-- By month, and what was received more than 90 days late by year: an insert makes a part in each partition, so a batch
-- of history that is scattered over 25 years makes some 30 parts and not 300.
PARTITION BY if(toDate(received_at) - toDate(timestamp) > 90, toYear(timestamp), toYYYYMM(timestamp))
ORDER BY (workspace_id, timestamp, toUInt128(uuid))
-- Small granules of small blocks that are quickly decompressed, since single rows are looked up: late events by the
-- writer, by queries the rows of a page that lie far apart.
SETTINGS index_granularity = 128, min_compress_block_size = 2048, max_compress_block_size = 4096

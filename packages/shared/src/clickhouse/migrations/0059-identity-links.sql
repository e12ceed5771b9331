-- Whose an anonymous visitor is, as facts (docs/design/decisions/0119-identity-is-a-fold.md). Something named both at `version`, or
-- somebody said so: then `said` is 1, and without a user the visitor is nobody's. The owner of a visitor follows from all of its facts
-- (packages/shared/src/clickhouse/identities.ts), in whatever order they arrive. So a pair may have several rows.
CREATE TABLE IF NOT EXISTS identity_links (
  workspace_id LowCardinality(String),
  anonymous_id String,
  user_id String,
  version UInt64,
  said UInt8,
  INDEX user_id_text user_id TYPE text(tokenizer = 'array')
)
ENGINE = ReplacingMergeTree
ORDER BY (workspace_id, anonymous_id, user_id, version, said)
SETTINGS
  -- Single rows are cheap to read: 0001-events.sql explains it.
  index_granularity = 128,
  min_compress_block_size = 2048,
  max_compress_block_size = 4096,
  -- Durability: 0001-events.sql explains these settings.
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

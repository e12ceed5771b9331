-- Deleted users. Everything accepted up to `version` is hidden from reading, and erased in the background; once
-- `erased_version` has reached `version`, nothing of it is left. Rows stay: a late row must still be recognised.
CREATE TABLE IF NOT EXISTS user_deletions (
  workspace_id LowCardinality(String),
  user_id String,
  version SimpleAggregateFunction(max, UInt64),
  stored_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  erased_version SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, user_id)

-- One row a user and one an organization: when it was first and last seen, and the highest version of anything said
-- about it. A deleted user exists again when that version is above its deletion's.
CREATE TABLE IF NOT EXISTS entities (
  workspace_id LowCardinality(String),
  kind LowCardinality(String),
  id String,
  first_seen_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  version SimpleAggregateFunction(max, UInt64)
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, kind, id)

-- Submissions without events that named a user. `entities` folds them to a first and a last time; of a user that was
-- deleted and seen again, only those after the deletion count, so here each is kept.
CREATE TABLE IF NOT EXISTS user_sightings (
  workspace_id LowCardinality(String),
  user_id String,
  version UInt64
)
ENGINE = ReplacingMergeTree
ORDER BY (workspace_id, user_id, version)

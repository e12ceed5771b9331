-- What the console keeps for everybody of a workspace, each as a JSON object: a 'view', a 'dashboard', or a 'link', which has the
-- hash of its key. The newest row of a document counts.
CREATE TABLE IF NOT EXISTS console_documents (
  kind LowCardinality(String),
  workspace_id String,
  id UUID,
  content String,
  created_at DateTime64(3, 'UTC'),
  is_deleted Bool,
  changed_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY (kind, workspace_id, id)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

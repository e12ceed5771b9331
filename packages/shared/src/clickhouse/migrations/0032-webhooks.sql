-- The webhooks of each workspace, as clients have set them. The newest row of a webhook counts.
CREATE TABLE IF NOT EXISTS webhooks (
  workspace_id String,
  id UUID,
  url String,
  -- The parameters of GET /events/stream that select events, as a JSON object.
  filter String,
  batched Bool,
  secret String,
  -- Signs as well until a time, after the secret was rotated.
  previous_secret String,
  previous_secret_until DateTime64(3, 'UTC'),
  created_at DateTime64(3, 'UTC'),
  is_deleted Bool,
  changed_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY (workspace_id, id)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- Whether reads that do not say it see persons ('linked') or what was sent ('raw'): of each workspace, when each was last set. What was
-- set last is in force; without a row it is 'linked' (docs/design/decisions/0124-whether-reads-see-persons.md).
CREATE TABLE IF NOT EXISTS console_identity_settings (
  workspace_id String,
  identity LowCardinality(String),
  set_at DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(set_at)
ORDER BY (workspace_id, identity)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- The replicas that share the rows of tables, as writers have noted them: what stores rows is refused at any other one, so whoever ends older
-- statements knows where some may be running (docs/design/decisions/0127-one-address.md).
CREATE TABLE IF NOT EXISTS writer_replicas (
  replica String,
  is_gone Bool,
  changed_at DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY replica
TTL toDateTime(changed_at) + INTERVAL 30 DAY DELETE WHERE is_gone
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- What workspaces have declared as fast (docs/design/decisions/0113-fast-properties.md): each list of names that a workspace has had, by the
-- column of each. The newest one is in force. The others say what the columns of older rows have.
CREATE TABLE IF NOT EXISTS console_fast_properties (
  workspace_id String,
  -- By column, from the first one on; '': the column is free.
  names Array(String),
  -- A hash of the names. So whoever stored a row, and whatever is known of declarations since, equal sets have equal columns.
  -- The 1 stands for how values are stored: another number for another way.
  fast_set UInt64 DEFAULT if(arrayExists(name -> name != '', names), greatest(1, sipHash64('1', toString(names))), 0),
  declared_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(declared_at)
ORDER BY (workspace_id, fast_set)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

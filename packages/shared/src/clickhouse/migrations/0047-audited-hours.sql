-- The books of each hour of receipt, as the newest complete audit of all of its rows has them.
CREATE TABLE IF NOT EXISTS audited_hours (
  workspace_id LowCardinality(String),
  hour DateTime('UTC'),
  -- Of the rows: 'events', 'changes' of users and organizations, 'rejected' calls.
  kind LowCardinality(String),
  -- accepted = stored + repeats + dead_letters + deleted + expired + waiting + given_up + unknown + missing
  accepted UInt64,
  stored UInt64,
  repeats UInt64,
  dead_letters UInt64,
  deleted UInt64,
  expired UInt64,
  -- In the log, and not yet stored by the writers.
  waiting UInt64,
  -- In the log before the offset at which an operator resumed a halted partition.
  given_up UInt64,
  -- Nothing that is left of the log or the database tells where they are.
  unknown UInt64,
  missing UInt64,
  -- Stored, and not in the log.
  invented UInt64,
  -- Visible rows beyond the first one of their key.
  duplicates UInt64,
  audit_id UUID,
  audited_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(audited_at)
-- What is asked for is of a month or two, of all workspaces.
PARTITION BY toYYYYMM(hour)
ORDER BY (workspace_id, hour, kind)
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

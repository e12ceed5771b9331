-- Audits: what Kafka's log and this database say about the same rows (docs/design/decisions/0109-books-that-balance.md). The newest row
-- of an audit counts; it is complete when `finished_at` is not null.
CREATE TABLE IF NOT EXISTS audits (
  id UUID,
  started_at DateTime64(6, 'UTC'),
  finished_at Nullable(DateTime64(6, 'UTC')),
  -- The hours of receipt that it looks at: from the first time up to the second one, which is not among them.
  since DateTime('UTC'),
  until DateTime('UTC'),
  -- The only workspace that it looks at; empty: all.
  workspace_id String,
  -- A sample has one of `shares` parts of the uuids and keys; 1: all.
  share UInt32,
  shares UInt32,
  sluice_version String,
  accepted UInt64,
  missing UInt64,
  invented UInt64,
  duplicates UInt64,
  -- Up to this time of receipt nothing that it looked at is missing, invented or stored twice.
  balanced_through DateTime('UTC'),
  -- What could not be looked at, in sentences, such as a log that begins later than the audit.
  notes Array(String),
  state_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(state_at)
ORDER BY id
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

-- What is done of copying another server into this database (`sluice servers copy`), a row for each step, so that a copy that
-- was broken off goes on where it was. `run` is one run of the command; that of the newest 'begun' row is the only one that may
-- still write. The steps:
-- 'begun', and 'alive' every few seconds until it has 'ended';
-- 'positions': how far `source` had stored each partition before anything was copied; what comes later is read from Kafka.
-- The deletions of users are copied as well by then;
-- 'events': a partition of the table `events` is copied, with so many rows;
-- 'abandoned': what was copied before is not to be used.
-- That the database is complete, and that it is being filled until then, says database_identity.
CREATE TABLE IF NOT EXISTS copies (
  run UUID,
  step LowCardinality(String),
  -- The name of the server that is copied, and the id of its database.
  source String,
  source_id String,
  partition String,
  rows UInt64,
  positions Array(Tuple(
    topic String, partition UInt32, next_offset Int64, fingerprint String, leader_epoch Int32
  )),
  recorded_at DateTime64(6, 'UTC')
)
ENGINE = MergeTree
ORDER BY recorded_at
-- Durability: 0001-events.sql explains these settings.
SETTINGS
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

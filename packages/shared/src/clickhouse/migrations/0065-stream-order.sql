-- In which order streams send events where ClickHouse replicates its tables. There a block gets its number before it is committed, and for each
-- partition of `events` on its own, and a replica fetches parts in any order. So the writer that owns the first partition of the log looks again and
-- again which blocks are on two replicas, and records them under a number that grows. Each replica has a table of its own: what it says it
-- has reached is there. docs/design/decisions/0128-order-on-replicas.md explains why that holds. On one server it is empty.
CREATE TABLE IF NOT EXISTS stream_order (
  -- The number of a record; 0 in the row that says which number this replica has reached.
  record UInt64,
  -- The same number, or the one that is reached. It is the time of the writer in milliseconds, or more.
  number UInt64,
  -- Ranges of blocks, the first and the last one of each with its partition of `events`: those that got this number, or all that got any.
  partitions Array(UInt32),
  firsts Array(UInt64),
  lasts Array(UInt64),
  -- Everything that Kafka had appended before is stored, and is at this replica; 1970 in records, and where that is not known.
  through DateTime64(3, 'UTC'),
  -- When the replica was started that has reached it, by its own clock: what it had before it was started again does not count. 1970 in records.
  started_at DateTime('UTC'),
  -- By the clock of ClickHouse.
  recorded_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(recorded_at)
ORDER BY record
-- A day longer than a stream can be resumed.
TTL toDateTime(recorded_at) + INTERVAL 8 DAY WHERE record > 0
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_free_disk_bytes_to_perform_insert = 67108864

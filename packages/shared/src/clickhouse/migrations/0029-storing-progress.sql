-- How far the server was at some time: everything that Kafka had appended before `through` was stored then, in blocks up to
-- `newest_block`. One of its writers records it every few seconds, where there are several servers. With it, readers know
-- how far behind a server is also while nothing comes, and streams go on at another server.
CREATE TABLE IF NOT EXISTS storing_progress (
  -- By the clock of ClickHouse.
  recorded_at DateTime64(3, 'UTC'),
  through DateTime64(3, 'UTC'),
  newest_block UInt64
)
ENGINE = MergeTree
ORDER BY recorded_at
-- A day longer than a stream can be resumed.
TTL toDateTime(recorded_at) + INTERVAL 8 DAY

-- A statement of its own: the time must not be before the moment at which the newest block was read, however long ClickHouse
-- stood still in between.
INSERT INTO storing_progress (recorded_at, through, newest_block)
SELECT now64(3), fromUnixTimestamp64Milli({throughMs:Int64}), {newestBlock:UInt64}

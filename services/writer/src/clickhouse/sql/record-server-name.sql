-- Names the server of a database that was there before the file of servers.
-- The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT id, {server:String}, group_id, partitions, state, detail, greatest(now64(6), recorded_at + toIntervalMicrosecond(1))
FROM database_identity
ORDER BY recorded_at DESC, id
LIMIT 1

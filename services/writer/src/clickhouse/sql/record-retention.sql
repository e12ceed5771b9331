-- Records for how many days the events of a workspace are kept, unless that is what is recorded already; 0 days: it has no
-- retention of its own. The empty workspace is all others.
-- The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO retention (workspace_id, days, set_at)
SELECT {workspace:String}, {days:UInt32}, greatest(now64(6), max(set_at) + toIntervalMicrosecond(1))
FROM retention
WHERE workspace_id = {workspace:String}
HAVING argMax(days, set_at) != {days:UInt32}

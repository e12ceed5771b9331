-- For how long the events of workspaces are kept.

-- name: record-retention
-- Records for how many days the events of a workspace are kept, unless that is what is recorded already; 0 days: it has no
-- retention of its own. The empty workspace is all others.
-- The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO retention (workspace_id, days, set_at)
SELECT {workspace:String}, {days:UInt32}, greatest(now64(6), max(set_at) + toIntervalMicrosecond(1))
FROM retention
WHERE workspace_id = {workspace:String}
HAVING argMax(days, set_at) != {days:UInt32}

-- name: read-retention
-- All settings, and how long ago each was made. Those of 0 days are over.
SELECT
  workspace_id AS workspace,
  days,
  toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(set_at) AS ageMs,
  toUnixTimestamp64Milli(now64(3)) AS nowMs
FROM retention FINAL
ORDER BY workspace

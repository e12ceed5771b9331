-- What operators set, and what metrics show them.

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

-- name: read-server-state
-- The disks of the server, and the tables of the database. It reads what ClickHouse knows of parts, never rows.
SELECT
  name AS disk, free_space AS free_bytes, total_space AS total_bytes,
  '' AS table, 0 AS parts, 0 AS parts_limit, 0 AS pending_mutations
FROM system.disks
UNION ALL
SELECT
  '', 0, 0,
  tables.name,
  parts_of.fullest,
  -- The setting of the table, where an operator has set one, else that of the server.
  coalesce(
    toUInt64OrNull(extract(tables.engine_full, 'parts_to_throw_insert = (\\d+)')),
    (SELECT toUInt64(value) FROM system.merge_tree_settings WHERE name = 'parts_to_throw_insert'),
    0
  ),
  mutations_of.pending
FROM system.tables AS tables
LEFT JOIN (
  SELECT table, max(active_parts) AS fullest
  FROM (
    SELECT table, partition_id, count() AS active_parts
    FROM system.parts
    WHERE database = currentDatabase() AND active
    GROUP BY table, partition_id
  )
  GROUP BY table
) AS parts_of ON parts_of.table = tables.name
LEFT JOIN (
  SELECT table, count() AS pending
  FROM system.mutations
  WHERE database = currentDatabase() AND NOT is_done
  GROUP BY table
) AS mutations_of ON mutations_of.table = tables.name
WHERE tables.database = currentDatabase() AND endsWith(tables.engine, 'MergeTree')

-- name: read-pending-erasures
-- The users who are deleted and not erased yet, and how long the first of them has waited, by ClickHouse's own clock.
SELECT count() AS users, if(users = 0, 0, dateDiff('millisecond', min(stored), now64(3))) / 1000 AS oldest_seconds
FROM (
  SELECT max(stored_at) AS stored
  FROM pending_deletions
  GROUP BY workspace_id, user_id
)

-- name: read-backup-age
-- The seconds since the newest complete backup began; without any, since the first migration created the database.
SELECT dateDiff(
  'second',
  if(
    countIf(finished_at IS NOT NULL) > 0,
    maxIf(started_at, finished_at IS NOT NULL),
    toDateTime64((SELECT min(applied_at) FROM schema_migrations), 6, 'UTC')
  ),
  now64(6, 'UTC')
) AS age_seconds
FROM backups FINAL

-- name: read-comparisons
-- The newest comparison with each other server. Those that have expired are removed at some time.
SELECT
  other,
  toUnixTimestamp64Milli(max(compared_at)) / 1000 AS compared_seconds,
  toUInt8(argMax(notEmpty(differing), compared_at)) AS differs
FROM server_comparisons
WHERE compared_at > now64(3) - toIntervalDay(90)
GROUP BY other
ORDER BY other

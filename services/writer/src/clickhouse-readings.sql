-- What metrics show of ClickHouse.

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

-- name: read-audits
-- What the newest audit of each hour of the last 30 days found, and how far that audit of everything of the last 90 days found
-- nothing which reaches furthest. Only hours in which an audit has found something are read a second time.
WITH differing AS (
  SELECT workspace_id, hour, kind
  FROM audited_hours
  WHERE hour >= now() - toIntervalDay(30) AND (missing > 0 OR invented > 0 OR duplicates > 0)
), complete AS (
  SELECT workspace_id, until, finished_at, balanced_through
  FROM audits FINAL
  WHERE finished_at > now64(6) - toIntervalDay(90) AND shares = 1
)
SELECT
  sum(newest.1) AS missing, sum(newest.2) AS invented, sum(newest.3) AS duplicates,
  (
    SELECT if(count() = 0, NULL, toUnixTimestamp(argMax(balanced_through, (until, finished_at))))
    FROM complete
    WHERE workspace_id = ''
  ) AS balanced_seconds,
  (SELECT toUInt8(count() > 0) FROM complete) AS is_audited
FROM (
  SELECT argMax((missing, invented, duplicates), audited_at) AS newest
  FROM audited_hours
  WHERE (workspace_id, hour, kind) IN differing
  GROUP BY workspace_id, hour, kind
)

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

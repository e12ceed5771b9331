-- Stores what erase-entities needs to remove the rows of find-mixed-users: a row of each user that begins after the
-- deletion, with the times since then. All events and sightings of the old rows are stored by now, since their writers did
-- not know the deletion. An event may have expired and be erased; without any, the time of the last change stands in, as
-- in what query-api shows. Where the old rows are removed already, nothing is stored.
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
SELECT
  workspace,
  'user',
  user,
  toString(deleted_version),
  if(min(is_old_row), max(seen_at), minIf(seen_at, NOT is_old_row)),
  if(min(is_old_row), max(seen_at), maxIf(seen_at, NOT is_old_row)),
  maxIf(version, is_old_row)
FROM (
  SELECT
    *,
    {versions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (workspace, user))
    ] AS deleted_version
  FROM (
    SELECT
      toString(workspace_id) AS workspace,
      user_id AS user,
      timestamp AS seen_at,
      toUInt64(toUnixTimestamp64Micro(received_at)) AS version,
      0 AS begins_after,
      0 AS is_old_row
    FROM events
    WHERE user_id IN {users:Array(String)}
      -- find-deleted-rows explains it.
      AND (identity(toString(workspace_id)), user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    UNION ALL
    SELECT
      toString(workspace_id),
      user_id,
      fromUnixTimestamp64Milli(toInt64(intDiv(version, 1000)), 'UTC'),
      version,
      0,
      0
    FROM user_sightings
    WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    UNION ALL
    SELECT
      toString(workspace_id),
      id,
      fromUnixTimestamp64Milli(toInt64(intDiv(version, 1000)), 'UTC'),
      version,
      toUInt64OrZero(other_id),
      1
    FROM entities
    WHERE kind = 'user' AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  )
)
WHERE begins_after < deleted_version AND version > deleted_version
GROUP BY workspace, user, deleted_version
HAVING max(is_old_row)

-- What is stored of deleted users, up to the version of each deletion: the tables, and the partitions of `events`.
-- The index on user_id and the sorting keys find it, so that users without rows cost next to nothing. `identity` keeps
-- ClickHouse from comparing every mark of `events` with the workspaces, which costs with the table and excludes little.
SELECT DISTINCT toString(workspace_id) AS workspace_id, user_id, 'events' AS source, _partition_id AS partition
FROM events
WHERE user_id IN {users:Array(String)}
  AND (identity(toString(workspace_id)), user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]
UNION ALL
SELECT DISTINCT toString(workspace_id), id, 'properties', ''
FROM entity_properties
WHERE kind = 'user'
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND multiIf(
    once_week > 1, once_week * 604800000000 + register.version,
    register.version BETWEEN 1000000000000 AND 946684799999999, toUInt64(2650000000000000 - register.version),
    register.version
  ) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]
UNION ALL
SELECT DISTINCT toString(workspace_id), user_id, 'sightings', ''
FROM user_sightings
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]
UNION ALL
-- Rows of the user that begin before the deletion are removed, and replaced where they go on after it. A member is in the
-- same part as its membership, since an insert writes both: it need not be looked for.
SELECT DISTINCT toString(workspace_id), id, 'entities', ''
FROM entities
WHERE kind IN ('user', 'membership')
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND if(kind = 'user', toUInt64OrZero(other_id) + 1, version) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]
UNION ALL
SELECT DISTINCT workspace_id, user_id, 'dead-letters', ''
FROM dead_letters
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (workspace_id, user_id))
  ]

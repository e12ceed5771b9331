-- The mutation may outlive the session and the writer, so it must not refer to temporary tables.
DELETE FROM events
WHERE user_id IN {users:Array(String)}
  AND (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]

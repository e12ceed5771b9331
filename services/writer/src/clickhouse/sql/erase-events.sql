-- Removes rows of one partition by rewriting the parts that hold them. A lightweight DELETE would only mask them, and
-- while any row of the table is masked, ClickHouse counts by reading instead of by the sorting key or an index.
-- The mutation may outlive the session and the writer, so it must not refer to temporary tables.
ALTER TABLE events DELETE IN PARTITION ID {partition:String}
WHERE user_id IN {users:Array(String)}
  AND (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]

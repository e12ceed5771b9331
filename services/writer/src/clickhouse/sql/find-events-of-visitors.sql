-- As the events of find-deleted-rows, of anonymous visitors: the events with their anonymous ids that have no user.
SELECT DISTINCT toString(workspace_id) AS workspace_id, anonymous_id, _partition_id AS partition
FROM events
WHERE user_id = ''
  AND anonymous_id IN {visitors:Array(String)}
  AND (identity(toString(workspace_id)), anonymous_id) IN arrayZip({workspaces:Array(String)}, {visitors:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {visitors:Array(String)}), (toString(workspace_id), anonymous_id))
  ]

-- As erase-events, of anonymous visitors.
ALTER TABLE events DELETE IN PARTITION ID {partition:String}
WHERE user_id = ''
  AND anonymous_id IN {visitors:Array(String)}
  AND (workspace_id, anonymous_id) IN arrayZip({workspaces:Array(String)}, {visitors:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {visitors:Array(String)}), (toString(workspace_id), anonymous_id))
  ]

ALTER TABLE user_sightings DELETE
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]

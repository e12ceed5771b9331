-- The row of a user who came back after the deletion stays.
ALTER TABLE entities DELETE
WHERE kind = 'user'
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]

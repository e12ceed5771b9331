ALTER TABLE entity_properties DELETE
WHERE kind = 'user'
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND register.version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]

ALTER TABLE entity_properties DELETE
WHERE kind = 'user'
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND multiIf(
    once_week > 1, once_week * 604800000000 + register.version,
    register.version BETWEEN 1000000000000 AND 946684799999999, toUInt64(2650000000000000 - register.version),
    register.version
  ) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]

-- The users and their memberships, from both sides. What is of a user who came back after the deletion stays.
ALTER TABLE entities DELETE
WHERE (
    kind IN ('user', 'membership')
      AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    OR kind = 'member'
      AND (workspace_id, other_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  )
  AND version <= {versions:Array(Int64)}[
    indexOf(
      arrayZip({workspaces:Array(String)}, {users:Array(String)}),
      (toString(workspace_id), if(kind = 'member', other_id, id))
    )
  ]

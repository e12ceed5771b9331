-- The users and their memberships, from both sides. What is of a user who came back after the deletion stays: rows of the
-- user that begin after it, and memberships that go on after it. Of rows of the user that begin before it, those up to
-- `replacedVersions` are removed, which store-returned-users has replaced where they go on after it.
ALTER TABLE entities DELETE
WHERE kind = 'user'
    AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    AND toUInt64OrZero(other_id) < {versions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
    ]
    AND version <= {replacedVersions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
    ]
  OR (
    kind = 'membership' AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    OR kind = 'member' AND (workspace_id, other_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  )
  AND version <= {versions:Array(Int64)}[
    indexOf(
      arrayZip({workspaces:Array(String)}, {users:Array(String)}),
      (toString(workspace_id), if(kind = 'member', other_id, id))
    )
  ]

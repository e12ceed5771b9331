-- The users of a pass who came back, and of whom a row may hold times from before their deletion and after it: it begins
-- before the deletion and goes on after it (store-seen.ts). With the newest version of these rows.
SELECT workspace AS workspace_id, user AS user_id, max(version) AS newest_version
FROM (
  SELECT
    toString(workspace_id) AS workspace,
    id AS user,
    toUInt64OrZero(other_id) AS begins_after,
    version,
    {versions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
    ] AS deleted_version
  FROM entities
  WHERE kind = 'user' AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
)
WHERE begins_after < deleted_version AND version > deleted_version
GROUP BY workspace, user

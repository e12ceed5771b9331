INSERT INTO user_deletions (workspace_id, user_id, erased_version)
SELECT erased.1, erased.2, toUInt64(erased.3)
FROM (
  SELECT arrayJoin(
    arrayZip({workspaces:Array(String)}, {users:Array(String)}, {versions:Array(Int64)})
  ) AS erased
)

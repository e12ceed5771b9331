-- The oldest pending deletions after a cursor. A deletion is due only when it has been stored for so long that every
-- insert which did not see it has ended.
SELECT
  workspace_id,
  user_id,
  max(version) AS deleted_version,
  toUnixTimestamp64Milli(max(stored_at)) AS stored_ms
FROM pending_deletions
GROUP BY workspace_id, user_id
HAVING max(stored_at) <= now64(3) - toIntervalMillisecond({delayMs:UInt64})
  AND (stored_ms, workspace_id, user_id) > ({afterMs:Int64}, {afterWorkspace:String}, {afterUser:String})
ORDER BY stored_ms, workspace_id, user_id
LIMIT {usersMax:UInt32}

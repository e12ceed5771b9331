-- Deletions that have not been erased yet, and that every insert now running has taken into account: the oldest of those
-- after a position.
SELECT
  workspace_id,
  user_id,
  max(version) AS deleted_version,
  toUnixTimestamp64Milli(max(stored_at)) AS stored_ms
FROM user_deletions
GROUP BY workspace_id, user_id
HAVING deleted_version > max(erased_version)
  AND max(stored_at) <= now64(3) - toIntervalMillisecond({delayMs:UInt64})
  AND (stored_ms, workspace_id, user_id) > ({afterMs:Int64}, {afterWorkspace:String}, {afterUser:String})
ORDER BY stored_ms, workspace_id, user_id
LIMIT {usersMax:UInt32}

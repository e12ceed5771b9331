-- Deletions that have not been erased yet, and that every insert now running has taken into account.
SELECT workspace_id, user_id, max(version) AS deleted_version
FROM user_deletions
GROUP BY workspace_id, user_id
HAVING deleted_version > max(erased_version) AND max(stored_at) <= now64(3) - toIntervalMillisecond({delayMs:UInt64})
ORDER BY max(stored_at)
LIMIT {usersMax:UInt32}

-- The users who are deleted and not erased yet, and how long the first of them has waited, by ClickHouse's own clock.
SELECT count() AS users, if(users = 0, 0, dateDiff('millisecond', min(stored), now64(3))) / 1000 AS oldest_seconds
FROM (
  SELECT max(stored_at) AS stored
  FROM pending_deletions
  GROUP BY workspace_id, user_id
)

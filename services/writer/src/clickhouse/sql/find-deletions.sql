-- The deletions of the users and visitors in the batch, stored ones and those of the batch itself. A deletion that another
-- writer stores after this moment does no harm: it is erased only after this batch has ended.
-- The sorting key finds up to 1000 users: at most 128 rows are read for each, however many were deleted before. For more
-- users, reading the hash of every deletion is faster.
CREATE TEMPORARY TABLE deletions ENGINE = Memory AS
SELECT workspace_id, user_id, max(version) AS deleted_version
FROM (
  SELECT workspace_id, user_id, version
  FROM user_deletions
  PREWHERE user_hash IN (
    SELECT cityHash64(person) FROM staged_events
    UNION ALL
    SELECT cityHash64(id) FROM staged_changes WHERE kind = 'user'
  )
  WHERE user_id IN (
    SELECT person FROM staged_events
    UNION ALL
    SELECT id FROM staged_changes WHERE kind = 'user'
  )
  UNION ALL
  SELECT workspace_id, id, version
  FROM staged_changes
  WHERE kind = 'user' AND operation = 'delete'
)
GROUP BY workspace_id, user_id
SETTINGS use_index_for_in_with_subqueries_max_values = 1000

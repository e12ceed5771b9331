-- When the users of the batch were deleted, by this batch or before it. As of now: a deletion that is stored later is
-- erased later, too, when this batch has ended. The index of so few rows costs more than it saves, unless for few users.
CREATE TEMPORARY TABLE deletions ENGINE = Memory AS
SELECT workspace_id, user_id, max(version) AS deleted_version
FROM (
  SELECT workspace_id, user_id, version
  FROM user_deletions
  WHERE user_id IN (
    SELECT user_id FROM staged_events
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

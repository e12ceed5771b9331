-- What the next statements have to know of the staged changes: how many there are of each kind, and whether one of their
-- users was ever deleted, and after the oldest of them was accepted, or is deleted by one of them. See inspect-events.
WITH
  (
    SELECT max(version)
    FROM user_deletions
    PREWHERE user_hash IN (SELECT cityHash64(id) FROM staged_changes WHERE kind = 'user')
    WHERE user_id IN (SELECT id FROM staged_changes WHERE kind = 'user')
    SETTINGS use_index_for_in_with_subqueries_max_values = 1000
  ) AS last_deletion
SELECT
  countIf(operation = 'seen') AS seen,
  countIf(operation IN ('set', 'set_once', 'remove')) AS properties,
  countIf(operation = 'delete') AS deletions,
  deletions > 0 OR last_deletion > 0 AS were_deleted,
  deletions > 0 OR last_deletion >= min(staged_changes.version) AS may_be_deleted
FROM staged_changes

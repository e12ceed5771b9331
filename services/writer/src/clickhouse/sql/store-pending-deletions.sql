-- After store-deletions has ended: an insert that does not know the deletion began before `stored_at`.
INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
SELECT workspace_id, id, max(version), now64(3)
FROM staged_changes
WHERE kind = 'user' AND operation = 'delete'
GROUP BY workspace_id, id

-- Before all other inserts, so that they see the deletions of this batch.
INSERT INTO user_deletions (workspace_id, user_id, version)
SELECT workspace_id, id, max(version)
FROM staged_changes
WHERE kind = 'user' AND operation = 'delete'
GROUP BY workspace_id, id

-- When the users of the staged changes were last deleted. A view for the reason that event_deletions is one.
CREATE TEMPORARY VIEW change_deletions AS
SELECT workspace_id, 'user' AS kind, user_id AS id, max(version) AS deleted_version
FROM user_deletions
WHERE (workspace_id, user_id) IN (SELECT workspace_id, id FROM staged_changes WHERE kind = 'user')
GROUP BY workspace_id, user_id

INSERT INTO user_sightings (workspace_id, user_id, version)
SELECT DISTINCT workspace_id, id, version
FROM staged_changes
LEFT JOIN change_deletions USING (workspace_id, kind, id)
WHERE kind = 'user' AND operation = 'seen' AND version > deleted_version

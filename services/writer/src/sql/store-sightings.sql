INSERT INTO user_sightings (workspace_id, user_id, version)
SELECT DISTINCT workspace_id, id, version
FROM staged_changes
WHERE kind = 'user' AND operation = 'seen'

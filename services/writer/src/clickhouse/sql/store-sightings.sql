INSERT INTO user_sightings (workspace_id, user_id, version, group_id)
SELECT DISTINCT workspace_id, id, version, group_id
FROM staged_changes
WHERE kind = 'user' AND operation = 'seen'

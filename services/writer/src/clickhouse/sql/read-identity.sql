-- The newest row first.
SELECT toString(id) AS id, server, group_id AS groupId, partitions, state, detail
FROM database_identity
ORDER BY recorded_at DESC, id

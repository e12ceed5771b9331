-- How many staged events were stamped on receipt, and how many belong to a user who was deleted after their receipt.
SELECT countIf(stamped = 1) AS stamped, countIf(received_at <= deleted_at) AS deleted
FROM staged_events
LEFT JOIN event_deletions USING (workspace_id, user_id)

-- How many staged changes belong to a user who was deleted after their receipt.
SELECT countIf(operation != 'delete' AND version <= deleted_version) AS deleted
FROM staged_changes
LEFT JOIN change_deletions USING (workspace_id, kind, id)

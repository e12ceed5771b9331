-- Takes the changes out of the batch whose user was deleted after their receipt.
ALTER TABLE staged_changes DELETE
WHERE kind = 'user' AND operation != 'delete' AND (workspace_id, id, version) IN (
  SELECT staged_changes.workspace_id, id, version
  FROM staged_changes
  INNER JOIN deletions ON deletions.workspace_id = staged_changes.workspace_id AND deletions.user_id = staged_changes.id
  WHERE version <= deleted_version
)

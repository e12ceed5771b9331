-- Drops the staged changes that were accepted before their user was deleted.
ALTER TABLE staged_changes DELETE
WHERE kind = 'user' AND operation != 'delete' AND (workspace_id, id, version) IN (
  SELECT staged_changes.workspace_id, id, version
  FROM staged_changes
  INNER JOIN deletions ON deletions.workspace_id = staged_changes.workspace_id AND deletions.user_id = staged_changes.id
  WHERE version <= deleted_version
)

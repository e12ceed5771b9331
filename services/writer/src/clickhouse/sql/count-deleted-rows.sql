-- Counts the staged rows that were accepted before their user was deleted.
SELECT
  (
    SELECT count()
    FROM staged_events
    INNER JOIN deletions ON deletions.workspace_id = staged_events.workspace_id AND deletions.user_id = person
    WHERE toUnixTimestamp64Micro(received_at) <= deleted_version
  ) AS events,
  (
    SELECT count()
    FROM staged_changes
    INNER JOIN deletions ON deletions.workspace_id = staged_changes.workspace_id AND deletions.user_id = staged_changes.id
    WHERE kind = 'user' AND operation != 'delete' AND version <= deleted_version
  ) AS changes

-- Drops the staged events that were accepted before their user or visitor was deleted.
ALTER TABLE staged_events DELETE
WHERE (workspace_id, person, received_at) IN (
  SELECT staged_events.workspace_id, person, received_at
  FROM staged_events
  INNER JOIN deletions ON deletions.workspace_id = staged_events.workspace_id AND deletions.user_id = person
  WHERE toUnixTimestamp64Micro(received_at) <= deleted_version
)

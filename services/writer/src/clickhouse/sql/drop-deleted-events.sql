-- Drops the staged events that were accepted before their user was deleted.
ALTER TABLE staged_events DELETE
WHERE (workspace_id, user_id, received_at) IN (
  SELECT workspace_id, user_id, received_at
  FROM staged_events
  INNER JOIN deletions USING (workspace_id, user_id)
  WHERE toUnixTimestamp64Micro(received_at) <= deleted_version
)

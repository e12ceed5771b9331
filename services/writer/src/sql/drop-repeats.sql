-- Drops the staged events that find-repeats found.
ALTER TABLE staged_events DELETE
WHERE (workspace_id, timestamp, uuid) IN (SELECT workspace_id, timestamp, uuid FROM repeats)

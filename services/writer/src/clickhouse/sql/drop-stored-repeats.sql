-- Leaves out the staged events that are stored already, by their keys. One thread keeps the order of the others.
CREATE OR REPLACE TEMPORARY TABLE staged_events ENGINE = Memory AS
SELECT *
FROM staged_events
WHERE (workspace_id, timestamp, uuid) NOT IN (SELECT workspace_id, timestamp, uuid FROM originals)
SETTINGS max_threads = 1

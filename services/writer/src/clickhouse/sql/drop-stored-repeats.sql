-- Leaves out the staged events that are stored already, by their keys. One thread keeps the order of the others.
-- drop-repeats says why `person` is named.
CREATE OR REPLACE TEMPORARY TABLE staged_events ENGINE = Memory AS
SELECT * EXCEPT person, person
FROM staged_events
WHERE (workspace_id, timestamp, uuid) NOT IN (SELECT workspace_id, timestamp, uuid FROM originals)
SETTINGS max_threads = 1

-- Leaves out the staged events at the places of `repeats`. One thread numbers the rows as in read-possible-repeats.sql.
-- * has `person` once the table was replaced, and not before, when it is a computed column.
CREATE OR REPLACE TEMPORARY TABLE staged_events ENGINE = Memory AS
SELECT * EXCEPT place
FROM (SELECT * EXCEPT person, person, rowNumberInAllBlocks() AS place FROM staged_events)
WHERE place NOT IN (SELECT place FROM repeats)
SETTINGS max_threads = 1

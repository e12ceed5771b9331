-- Reads the staged events that may be repeats, and the stored ones that they may repeat: those that share a workspace and
-- uuid. protocol/repeats.ts decides. Stored ones come first, then staged ones by their places in the batch.
-- One thread numbers the rows in the order in which they were loaded. It is that of the log for each partition.
SELECT place, workspace_id, uuid, time_ms, timed_by_receipt, stamped
FROM (
  SELECT
    toInt64(rowNumberInAllBlocks()) AS place,
    workspace_id,
    uuid,
    toUnixTimestamp64Milli(timestamp) AS time_ms,
    time_ms = intDiv(toUnixTimestamp64Micro(received_at), 1000) AS timed_by_receipt,
    stamped
  FROM staged_events
  UNION ALL
  SELECT DISTINCT
    toInt64(-1) AS place,
    workspace_id,
    uuid,
    toUnixTimestamp64Milli(timestamp) AS time_ms,
    time_ms = intDiv(toUnixTimestamp64Micro(received_at), 1000) AS timed_by_receipt,
    0 AS stamped
  FROM originals
  WHERE (workspace_id, uuid) IN (SELECT workspace_id, uuid FROM staged_events)
)
WHERE place < 0 OR (workspace_id, uuid) IN (
  SELECT workspace_id, uuid FROM staged_events GROUP BY workspace_id, uuid HAVING count() > 1
  UNION ALL
  SELECT workspace_id, uuid FROM originals
)
ORDER BY place
SETTINGS max_threads = 1

-- Leaves out the staged events that repeat an original, and those that repeat another staged one: of several with the same
-- key the one that was accepted first stays, of stamped ones with the same uuid within ten minutes the earliest.
CREATE OR REPLACE TEMPORARY TABLE staged_events ENGINE = Memory AS
SELECT *
FROM staged_events
WHERE (workspace_id, timestamp, uuid) NOT IN (SELECT workspace_id, timestamp, uuid FROM originals)
  AND NOT (stamped AND (workspace_id, timestamp, uuid) IN (
    SELECT staged.workspace_id, staged.timestamp, staged.uuid
    FROM staged_events AS staged
    INNER JOIN (
      SELECT workspace_id, uuid, timestamp
      FROM originals
      UNION ALL
      SELECT workspace_id, uuid, min(timestamp) AS timestamp
      FROM staged_events
      WHERE stamped
      GROUP BY workspace_id, uuid
    ) AS original ON original.workspace_id = staged.workspace_id AND original.uuid = staged.uuid
    WHERE staged.stamped
      AND original.timestamp != staged.timestamp
      AND original.timestamp BETWEEN staged.timestamp - INTERVAL 10 MINUTE AND staged.timestamp + INTERVAL 10 MINUTE
  ))
-- Which one stays must not depend on the attempt: its user and organization are stored before it.
ORDER BY received_at, user_id, group_id
LIMIT 1 BY workspace_id, timestamp, uuid

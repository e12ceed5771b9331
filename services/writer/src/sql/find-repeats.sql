-- Finds stamped events that were accepted before. Their key differs, because they have another timestamp, so they are
-- recognised by their uuid within ten minutes. Of several repeats in this batch the earliest is the original.
-- A stored event that a deletion hides is no original: an event that is sent again after the deletion is new.
INSERT INTO repeats (workspace_id, timestamp, uuid)
WITH
  (SELECT min(timestamp) FROM staged_events WHERE stamped) AS first_stamped,
  (SELECT max(timestamp) FROM staged_events WHERE stamped) AS last_stamped
SELECT staged.workspace_id AS workspace_id, staged.timestamp AS timestamp, staged.uuid AS uuid
FROM staged_events AS staged
INNER JOIN (
  SELECT workspace_id, uuid, timestamp
  FROM events
  LEFT JOIN deletions USING (workspace_id, user_id)
  WHERE timestamp BETWEEN first_stamped - INTERVAL 10 MINUTE AND last_stamped + INTERVAL 10 MINUTE
    AND (workspace_id, uuid) IN (SELECT workspace_id, uuid FROM staged_events WHERE stamped)
    AND toUnixTimestamp64Micro(received_at) > deleted_version
  UNION ALL
  SELECT workspace_id, uuid, min(timestamp) AS timestamp
  FROM staged_events
  WHERE stamped
  GROUP BY workspace_id, uuid
) AS original ON original.workspace_id = staged.workspace_id AND original.uuid = staged.uuid
WHERE staged.stamped
  AND original.timestamp != staged.timestamp
  AND original.timestamp BETWEEN staged.timestamp - INTERVAL 10 MINUTE AND staged.timestamp + INTERVAL 10 MINUTE

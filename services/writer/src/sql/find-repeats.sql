-- Events that were stamped on receipt and had been received before: their key differs in the timestamp, so they are
-- recognised by their uuid, within ten minutes. Of several in this batch the earliest is no repeat. An event that was
-- received before its user was deleted is no original: it is hidden, so what is sent again afterwards is new.
INSERT INTO repeats (workspace_id, timestamp, uuid)
WITH
  (SELECT min(timestamp) FROM staged_events WHERE stamped) AS first_stamped,
  (SELECT max(timestamp) FROM staged_events WHERE stamped) AS last_stamped,
  -- A scalar, so that it is looked up once.
  (SELECT groupArray((workspace_id, user_id, deleted_at)) FROM event_deletions) AS found_deletions,
  deletions AS (
    SELECT deletion.1 AS workspace_id, deletion.2 AS user_id, deletion.3 AS deleted_at
    FROM (SELECT arrayJoin(found_deletions) AS deletion)
  )
SELECT staged.workspace_id AS workspace_id, staged.timestamp AS timestamp, staged.uuid AS uuid
FROM staged_events AS staged
INNER JOIN (
  SELECT workspace_id, uuid, timestamp
  FROM (
    SELECT workspace_id, uuid, timestamp, user_id, received_at
    FROM events
    WHERE timestamp BETWEEN first_stamped - INTERVAL 10 MINUTE AND last_stamped + INTERVAL 10 MINUTE
      AND (workspace_id, uuid) IN (SELECT workspace_id, uuid FROM staged_events WHERE stamped)
  ) AS stored
  LEFT JOIN deletions USING (workspace_id, user_id)
  WHERE received_at > deleted_at
  UNION ALL
  SELECT workspace_id, uuid, min(timestamp) AS timestamp
  FROM staged_events
  LEFT JOIN deletions USING (workspace_id, user_id)
  WHERE stamped AND received_at > deleted_at
  GROUP BY workspace_id, uuid
) AS original ON original.workspace_id = staged.workspace_id AND original.uuid = staged.uuid
WHERE staged.stamped
  AND original.timestamp != staged.timestamp
  AND original.timestamp BETWEEN staged.timestamp - INTERVAL 10 MINUTE AND staged.timestamp + INTERVAL 10 MINUTE

-- Finds stamped events that were accepted before. Their key differs, because they have another timestamp, so they are
-- recognised by their uuid within ten minutes. Of several repeats in this batch the earliest is the original.
-- A stored event that a deletion hides is no original: an event that is sent again after the deletion is new.
CREATE TEMPORARY TABLE repeats ENGINE = Memory AS
SELECT staged.workspace_id AS workspace_id, staged.timestamp AS timestamp, staged.uuid AS uuid
FROM staged_events AS staged
INNER JOIN (
  SELECT workspace_id, uuid, timestamp
  FROM events
  LEFT JOIN (
    SELECT workspace_id, user_id, max(version) AS deleted_version
    FROM user_deletions
    PREWHERE user_hash IN (SELECT cityHash64(user_id) FROM staged_events WHERE stamped)
    WHERE user_id IN (SELECT user_id FROM staged_events WHERE stamped)
    GROUP BY workspace_id, user_id
    SETTINGS use_index_for_in_with_subqueries_max_values = 1000
  ) AS stored_deletions USING (workspace_id, user_id)
  WHERE timestamp BETWEEN fromUnixTimestamp64Milli({first_stamped:Int64}, 'UTC') - INTERVAL 10 MINUTE
      AND fromUnixTimestamp64Milli({last_stamped:Int64}, 'UTC') + INTERVAL 10 MINUTE
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

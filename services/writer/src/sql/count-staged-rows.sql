-- Counts the staged rows of each kind, and those that were accepted before their user was deleted.
SELECT partitions, stamped, seen, properties, deletions, deleted_events, deleted_changes
FROM (
  SELECT
    -- The same expression as PARTITION BY of the table `events`.
    uniqExact(if(toDate(received_at) - toDate(timestamp) > 90, toYear(timestamp), toYYYYMM(timestamp))) AS partitions,
    countIf(stamped = 1) AS stamped,
    countIf(toUnixTimestamp64Micro(received_at) <= deleted_version) AS deleted_events
  FROM staged_events
  LEFT JOIN deletions USING (workspace_id, user_id)
) AS events
CROSS JOIN (
  SELECT
    countIf(operation = 'seen') AS seen,
    countIf(operation IN ('set', 'remove')) AS properties,
    countIf(operation = 'delete') AS deletions,
    countIf(operation != 'delete' AND kind = 'user' AND version <= deleted_version) AS deleted_changes
  FROM staged_changes
  LEFT JOIN deletions ON deletions.workspace_id = staged_changes.workspace_id AND deletions.user_id = staged_changes.id
) AS changes

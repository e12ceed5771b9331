-- Before the events themselves: a crash in between leaves nothing missing, since this may be done again.
INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
WITH seen AS (
  SELECT workspace_id, timestamp, user_id, group_id, received_at
  FROM staged_events
  WHERE (workspace_id, timestamp, uuid) NOT IN (SELECT workspace_id, timestamp, uuid FROM repeats)
)
SELECT workspace_id, 'user', user_id, min(timestamp), max(timestamp), max(toUnixTimestamp64Micro(received_at))
FROM seen
WHERE user_id != ''
GROUP BY workspace_id, user_id
UNION ALL
SELECT workspace_id, 'organization', group_id, min(timestamp), max(timestamp), max(toUnixTimestamp64Micro(received_at))
FROM seen
WHERE group_id != ''
GROUP BY workspace_id, group_id

INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
SELECT
  workspace_id,
  kind,
  id,
  fromUnixTimestamp64Milli(toInt64(intDiv(min(version), 1000)), 'UTC'),
  fromUnixTimestamp64Milli(toInt64(intDiv(max(version), 1000)), 'UTC'),
  max(staged_changes.version)
FROM staged_changes
WHERE operation = 'seen'
GROUP BY workspace_id, kind, id

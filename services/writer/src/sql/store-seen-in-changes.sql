INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
SELECT
  workspace_id,
  kind,
  id,
  fromUnixTimestamp64Milli(toInt64(intDiv(min(version), 1000)), 'UTC'),
  fromUnixTimestamp64Milli(toInt64(intDiv(max(version), 1000)), 'UTC'),
  max(staged_changes.version)
FROM staged_changes
LEFT JOIN change_deletions USING (workspace_id, kind, id)
WHERE operation = 'seen' AND version > deleted_version
GROUP BY workspace_id, kind, id

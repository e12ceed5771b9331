-- All settings, and how long ago each was made. Those of 0 days are over.
SELECT
  workspace_id AS workspace,
  days,
  toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(set_at) AS ageMs,
  toUnixTimestamp64Milli(now64(3)) AS nowMs
FROM retention FINAL
ORDER BY workspace

-- The seconds since the newest complete backup began; without any, since the first migration created the database.
SELECT dateDiff(
  'second',
  if(
    countIf(finished_at IS NOT NULL) > 0,
    maxIf(started_at, finished_at IS NOT NULL),
    toDateTime64((SELECT min(applied_at) FROM schema_migrations), 6, 'UTC')
  ),
  now64(6, 'UTC')
) AS age_seconds
FROM backups FINAL

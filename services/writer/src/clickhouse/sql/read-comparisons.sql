-- The newest comparison with each other server. Those that have expired are removed at some time.
SELECT
  other,
  toUnixTimestamp64Milli(max(compared_at)) / 1000 AS compared_seconds,
  toUInt8(argMax(notEmpty(differing), compared_at)) AS differs
FROM server_comparisons
WHERE compared_at > now64(3) - toIntervalDay(90)
GROUP BY other
ORDER BY other

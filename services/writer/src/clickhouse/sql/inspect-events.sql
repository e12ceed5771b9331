-- What the next statements have to know of the staged events: how many there are, with how many keys, how many partitions of
-- the table they go to, how many are stamped, with how many uuids and when, and whether one of their users was deleted
-- after the oldest of them was accepted.
SELECT
  count() AS events,
  uniqExact((workspace_id, timestamp, uuid)) AS keys,
  -- The same expression as PARTITION BY of the table `events`.
  uniqExact(if(toDate(received_at) - toDate(timestamp) > 90, toYear(timestamp), toYYYYMM(timestamp))) AS partitions,
  countIf(stamped) AS stamped_events,
  uniqExactIf((workspace_id, uuid), stamped) AS stamped_uuids,
  toUnixTimestamp64Milli(minIf(timestamp, stamped)) AS first_stamped,
  toUnixTimestamp64Milli(maxIf(timestamp, stamped)) AS last_stamped,
  (
    SELECT max(version)
    FROM user_deletions
    PREWHERE user_hash IN (SELECT cityHash64(user_id) FROM staged_events)
    WHERE user_id IN (SELECT user_id FROM staged_events)
    SETTINGS use_index_for_in_with_subqueries_max_values = 1000
  ) >= min(toUnixTimestamp64Micro(received_at)) AS may_be_deleted
FROM staged_events

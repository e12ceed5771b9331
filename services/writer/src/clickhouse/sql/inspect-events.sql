-- What the next statements have to know of the staged events: how many there are, with how many keys, how many partitions of
-- the table they go to, how many are stamped and in which periods of ten minutes, how many are timed by their receipt and with how many uuids, and
-- whether one of their users or visitors was ever deleted, and after the oldest of them was accepted.
WITH
  toUnixTimestamp64Milli(timestamp) = intDiv(toUnixTimestamp64Micro(received_at), 1000) AS timed_by_receipt,
  (
    SELECT max(version)
    FROM user_deletions
    PREWHERE user_hash IN (SELECT cityHash64(person) FROM staged_events)
    WHERE user_id IN (SELECT person FROM staged_events)
    SETTINGS use_index_for_in_with_subqueries_max_values = 1000
  ) AS last_deletion
SELECT
  count() AS events,
  uniqExact((workspace_id, timestamp, uuid)) AS keys,
  -- The same expression as PARTITION BY of the table `events`.
  uniqExact(if(toDate(received_at) - toDate(timestamp) > 90, toYear(timestamp), toYYYYMM(timestamp))) AS partitions,
  countIf(stamped) AS stamped_events,
  countIf(stamped OR timed_by_receipt) AS timed_events,
  uniqExactIf((workspace_id, uuid), stamped OR timed_by_receipt) AS timed_uuids,
  toUnixTimestamp64Milli(minIf(timestamp, stamped)) AS first_stamped,
  toUnixTimestamp64Milli(maxIf(timestamp, stamped)) AS last_stamped,
  arraySort(groupUniqArrayIf(intDiv(toUnixTimestamp64Milli(timestamp), 600000), stamped)) AS stamped_periods,
  last_deletion > 0 AS were_deleted,
  last_deletion >= min(toUnixTimestamp64Micro(received_at)) AS may_be_deleted
FROM staged_events

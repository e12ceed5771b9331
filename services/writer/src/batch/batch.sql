-- The statements of a batch, in the order in which they run. All of a session run on the server on which its first one did; those that look at the
-- staged rows find out whether it is the one at which the writer has taken over (ownership.sql).

-- name: end-own-statements
-- Ends every statement of one batch. SYNC: returns when they have ended.
KILL QUERY WHERE startsWith(query_id, {prefix:String}) SYNC

-- name: record-ended-batch
-- From this moment on no statement of a batch that has failed begins to store anything, where its rows travel with each
-- (packages/storage/src/clickhouse/carried-tables.ts).
INSERT INTO ended_batches (id) VALUES ({attempt:UUID})

-- name: inspect-events
-- What the next statements have to know of the staged events: how many there are, with how many keys, how many partitions of
-- the table they go to, how many are stamped and in which periods of ten minutes, how many are timed by their receipt and with how many uuids,
-- whether one of their users or visitors was ever deleted, and after the oldest of them was accepted, and what their workspaces declare as
-- fast now.
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
  last_deletion >= min(toUnixTimestamp64Micro(received_at)) AS may_be_deleted,
  (
    SELECT groupArray((workspace_id, toString(row_set), names))
    FROM (
      SELECT workspace_id, row_set, names
      FROM console_fast_properties
      WHERE workspace_id IN (SELECT workspace_id FROM staged_events)
      ORDER BY declared_at DESC
      LIMIT 1 BY workspace_id
    )
    WHERE row_set != 0
  ) AS fast
FROM staged_events
WHERE AT_OWN_SERVER

-- name: inspect-changes
-- What the next statements have to know of the staged changes: how many there are of each kind, and whether one of their
-- users was ever deleted, and after the oldest of them was accepted, or is deleted by one of them. See inspect-events.
WITH
  (
    SELECT max(version)
    FROM user_deletions
    PREWHERE user_hash IN (SELECT cityHash64(id) FROM staged_changes WHERE kind = 'user')
    WHERE user_id IN (SELECT id FROM staged_changes WHERE kind = 'user')
    SETTINGS use_index_for_in_with_subqueries_max_values = 1000
  ) AS last_deletion
SELECT
  countIf(operation = 'seen') AS seen,
  countIf(operation IN ('set', 'set_once', 'remove')) AS properties,
  countIf(operation = 'delete') AS deletions,
  countIf(kind = 'visitor') AS links,
  deletions > 0 OR last_deletion > 0 AS were_deleted,
  deletions > 0 OR last_deletion >= min(staged_changes.version) AS may_be_deleted
FROM staged_changes
WHERE AT_OWN_SERVER

-- name: find-deletions
-- The deletions of the users and visitors in the batch, stored ones and those of the batch itself. A deletion that another
-- writer stores after this moment does no harm: it is erased only after this batch has ended.
-- The sorting key finds up to 1000 users: at most 128 rows are read for each, however many were deleted before. For more
-- users, reading the hash of every deletion is faster.
CREATE TEMPORARY TABLE deletions ENGINE = Memory AS
SELECT workspace_id, user_id, max(version) AS deleted_version
FROM (
  SELECT workspace_id, user_id, version
  FROM user_deletions
  PREWHERE user_hash IN (
    SELECT cityHash64(person) FROM staged_events
    UNION ALL
    SELECT cityHash64(id) FROM staged_changes WHERE kind = 'user'
  )
  WHERE user_id IN (
    SELECT person FROM staged_events
    UNION ALL
    SELECT id FROM staged_changes WHERE kind = 'user'
  )
  UNION ALL
  SELECT workspace_id, id, version
  FROM staged_changes
  WHERE kind = 'user' AND operation = 'delete'
)
GROUP BY workspace_id, user_id
SETTINGS use_index_for_in_with_subqueries_max_values = 1000

-- name: count-deleted-rows
-- Counts the staged rows that were accepted before their user was deleted.
SELECT
  (
    SELECT count()
    FROM staged_events
    INNER JOIN deletions ON deletions.workspace_id = staged_events.workspace_id AND deletions.user_id = person
    WHERE toUnixTimestamp64Micro(received_at) <= deleted_version
  ) AS events,
  (
    SELECT count()
    FROM staged_changes
    INNER JOIN deletions ON deletions.workspace_id = staged_changes.workspace_id AND deletions.user_id = staged_changes.id
    WHERE kind = 'user' AND operation != 'delete' AND version <= deleted_version
  ) AS changes

-- name: drop-deleted-events
-- Drops the staged events that were accepted before their user or visitor was deleted.
ALTER TABLE staged_events DELETE
WHERE (workspace_id, person, received_at) IN (
  SELECT staged_events.workspace_id, person, received_at
  FROM staged_events
  INNER JOIN deletions ON deletions.workspace_id = staged_events.workspace_id AND deletions.user_id = person
  WHERE toUnixTimestamp64Micro(received_at) <= deleted_version
)

-- name: drop-deleted-changes
-- Drops the staged changes that were accepted before their user was deleted.
ALTER TABLE staged_changes DELETE
WHERE kind = 'user' AND operation != 'delete' AND (workspace_id, id, version) IN (
  SELECT staged_changes.workspace_id, id, version
  FROM staged_changes
  INNER JOIN deletions ON deletions.workspace_id = staged_changes.workspace_id AND deletions.user_id = staged_changes.id
  WHERE version <= deleted_version
)

-- name: find-repeats
-- Finds the stored events that staged ones repeat: those with the same key. Each comes with its own user or visitor, who may
-- be another one than that of the repeat, and with its time of receipt: drop-hidden-originals needs both.
-- The look-up names the whole sorting key: many events may share a timestamp, such as the midnight of a day that was
-- imported, and must not be read for each batch. PREWHERE filters by the timestamp alone first, which makes a batch of
-- scattered history three times as fast.
CREATE TEMPORARY TABLE originals ENGINE = Memory AS
SELECT
  workspace_id,
  timestamp,
  uuid,
  if(user_id = '', concat('\xEF\xBF\xBF', anonymous_id), user_id) AS person,
  received_at
FROM events
PREWHERE timestamp IN (SELECT timestamp FROM staged_events)
WHERE (workspace_id, timestamp, uuid) IN (SELECT workspace_id, timestamp, uuid FROM staged_events)

-- name: find-stamped-repeats
-- Finds the stored events that stamped ones repeat. Their key differs, because they have another timestamp, so they are
-- recognised by their uuid, around the times of stamped events of the batch: `rangesToLookUp` says which. Only those that are timed by their
-- receipt count, as each stamped one is: protocol/repeats.ts says why.
INSERT INTO originals
SELECT
  workspace_id,
  timestamp,
  uuid,
  if(user_id = '', concat('\xEF\xBF\xBF', anonymous_id), user_id) AS person,
  received_at
FROM events
WHERE timestamp BETWEEN fromUnixTimestamp64Milli({first_stamped:Int64}, 'UTC') - INTERVAL 10 MINUTE
    AND fromUnixTimestamp64Milli({last_stamped:Int64}, 'UTC') + INTERVAL 10 MINUTE
  AND (workspace_id, uuid) IN (SELECT workspace_id, uuid FROM staged_events WHERE stamped)
  AND toUnixTimestamp64Milli(timestamp) = intDiv(toUnixTimestamp64Micro(received_at), 1000)

-- name: find-cold-times
-- The times of the staged events that may be on the cold volume: those of its months and, of late history, years.
WITH
  (
    SELECT groupUniqArray(partition_id)
    FROM system.parts
    WHERE database = currentDatabase()
      AND table = 'events'
      AND active
      AND disk_name IN (
        SELECT arrayJoin(disks) FROM system.storage_policies WHERE policy_name = 'sluice' AND volume_name = 'cold'
      )
  ) AS cold
SELECT DISTINCT toUnixTimestamp64Milli(timestamp) AS ms
FROM staged_events
WHERE hasAny(cold, [toString(toYYYYMM(timestamp)), toString(toYear(timestamp))])

-- name: drop-hidden-originals
-- A stored event that the deletion of its own user or visitor hides is no original: an event that is sent again after that
-- deletion is new, whomever it names. find-deletions explains the look-up.
CREATE OR REPLACE TEMPORARY TABLE originals ENGINE = Memory AS
SELECT originals.*
FROM originals
LEFT JOIN (
  SELECT workspace_id, user_id, max(version) AS deleted_version
  FROM user_deletions
  PREWHERE user_hash IN (SELECT cityHash64(person) FROM originals)
  WHERE user_id IN (SELECT person FROM originals)
  GROUP BY workspace_id, user_id
  SETTINGS use_index_for_in_with_subqueries_max_values = 1000
) AS deletions ON deletions.workspace_id = originals.workspace_id AND deletions.user_id = person
WHERE toUnixTimestamp64Micro(received_at) > deleted_version

-- name: drop-stored-repeats
-- Leaves out the staged events that are stored already, by their keys. One thread keeps the order of the others.
-- drop-repeats says why `person` is named.
CREATE OR REPLACE TEMPORARY TABLE staged_events ENGINE = Memory AS
SELECT * EXCEPT person, person
FROM staged_events
WHERE (workspace_id, timestamp, uuid) NOT IN (SELECT workspace_id, timestamp, uuid FROM originals)
SETTINGS max_threads = 1

-- name: read-possible-repeats
-- Reads the staged events that may be repeats, and the stored ones that they may repeat: those that share a workspace and
-- uuid. protocol/repeats.ts decides. Stored ones come first, then staged ones by their places in the batch.
-- One thread numbers the rows in the order in which they were loaded. It is that of the log for each partition.
SELECT place, workspace_id, uuid, time_ms, timed_by_receipt, stamped
FROM (
  SELECT
    toInt64(rowNumberInAllBlocks()) AS place,
    workspace_id,
    uuid,
    toUnixTimestamp64Milli(timestamp) AS time_ms,
    time_ms = intDiv(toUnixTimestamp64Micro(received_at), 1000) AS timed_by_receipt,
    stamped
  FROM staged_events
  UNION ALL
  SELECT DISTINCT
    toInt64(-1) AS place,
    workspace_id,
    uuid,
    toUnixTimestamp64Milli(timestamp) AS time_ms,
    time_ms = intDiv(toUnixTimestamp64Micro(received_at), 1000) AS timed_by_receipt,
    0 AS stamped
  FROM originals
  WHERE (workspace_id, uuid) IN (SELECT workspace_id, uuid FROM staged_events)
)
WHERE place < 0 OR (workspace_id, uuid) IN (
  SELECT workspace_id, uuid FROM staged_events GROUP BY workspace_id, uuid HAVING count() > 1
  UNION ALL
  SELECT workspace_id, uuid FROM originals
)
ORDER BY place
SETTINGS max_threads = 1

-- name: stage-repeats
CREATE TEMPORARY TABLE repeats (place UInt64) ENGINE = Memory

-- name: load-repeats
INSERT INTO repeats FORMAT JSONEachRow

-- name: drop-repeats
-- Leaves out the staged events at the places of `repeats`. One thread numbers the rows as in read-possible-repeats.
-- * has `person` once the table was replaced, and not before, when it is a computed column.
CREATE OR REPLACE TEMPORARY TABLE staged_events ENGINE = Memory AS
SELECT * EXCEPT place
FROM (SELECT * EXCEPT person, person, rowNumberInAllBlocks() AS place FROM staged_events)
WHERE place NOT IN (SELECT place FROM repeats)
SETTINGS max_threads = 1

-- name: store-dead-letters
INSERT INTO dead_letters (id, kind, format, topic, partition, offset, line, reason, row)
SELECT id, kind, format, topic, partition, offset, line, reason, base64Decode(row)
FROM input('id String, kind String, format String, topic String, partition UInt32, offset Int64, line UInt32, reason String, row String')
WHERE AT_OWN_SERVER
FORMAT JSONEachRow

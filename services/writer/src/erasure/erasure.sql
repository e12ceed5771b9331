-- Erasing deleted users and expired events, filling columns of older events, moving old events to the cold volume, and sending late events
-- that waited for it again.

-- name: find-due-erasures
-- The oldest pending deletions after a cursor. A deletion is due only when it has been stored for so long that every
-- insert which did not see it has ended, and when the visitors of the user have been deleted, too, for as long: what links them is
-- needed until then.
SELECT
  workspace_id,
  user_id,
  max(version) AS deleted_version,
  toUnixTimestamp64Milli(max(stored_at)) AS stored_ms
FROM pending_deletions
WHERE (workspace_id, user_id) NOT IN (
  SELECT workspace_id, user_id
  FROM identity_deletions
  WHERE (workspace_id, user_id) IN (SELECT workspace_id, user_id FROM pending_deletions)
  GROUP BY workspace_id, user_id, version
  HAVING max(settled_at) = toDateTime64(0, 3, 'UTC') OR max(settled_at) > now64(3) - toIntervalMillisecond({delayMs:UInt64})
)
GROUP BY workspace_id, user_id
HAVING max(stored_at) <= now64(3) - toIntervalMillisecond({delayMs:UInt64})
  AND (stored_ms, workspace_id, user_id) > ({afterMs:Int64}, {afterWorkspace:String}, {afterUser:String})
ORDER BY stored_ms, workspace_id, user_id
LIMIT {usersMax:UInt32}

-- name: find-deleted-rows
-- What is stored of deleted users, up to the version of each deletion: the tables, and the partitions of `events`.
-- The index on user_id and the sorting keys find it, so that users without rows cost next to nothing. `identity` keeps
-- ClickHouse from comparing every mark of `events` with the workspaces, which costs with the table and excludes little.
SELECT DISTINCT toString(workspace_id) AS workspace_id, user_id, 'events' AS source, _partition_id AS partition
FROM events
WHERE user_id IN {users:Array(String)}
  AND (identity(toString(workspace_id)), user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]
UNION ALL
SELECT DISTINCT toString(workspace_id), id, 'properties', ''
FROM entity_properties
WHERE kind = 'user'
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND multiIf(
    once_week > 1, once_week * 604800000000 + register.version,
    register.version BETWEEN 1000000000000 AND 946684799999999, toUInt64(2650000000000000 - register.version),
    register.version
  ) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]
UNION ALL
SELECT DISTINCT toString(workspace_id), user_id, 'sightings', ''
FROM user_sightings
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]
UNION ALL
SELECT DISTINCT toString(workspace_id), user_id, 'links', ''
FROM identity_links
WHERE user_id IN {users:Array(String)}
  AND (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]
UNION ALL
-- What says whom a user became (packages/shared/src/rows/merged-user.ts).
SELECT DISTINCT toString(workspace_id), substring(anonymous_id, 4), 'links', ''
FROM identity_links
WHERE (workspace_id, anonymous_id) IN arrayZip({workspaces:Array(String)}, arrayMap(user -> concat('\xEF\xBF\xBF', user), {users:Array(String)}))
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), substring(anonymous_id, 4)))
  ]
UNION ALL
-- Rows of the user that begin before the deletion are removed, and replaced where they go on after it. A member is in the
-- same part as its membership, since an insert writes both: it need not be looked for.
SELECT DISTINCT toString(workspace_id), id, 'entities', ''
FROM entities
WHERE kind IN ('user', 'membership')
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND if(kind = 'user', toUInt64OrZero(other_id) + 1, version) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]
UNION ALL
SELECT DISTINCT workspace_id, user_id, 'dead-letters', ''
FROM dead_letters
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (workspace_id, user_id))
  ]

-- name: find-events-of-visitors
-- As the events of find-deleted-rows, of anonymous visitors: the events with their anonymous ids that have no user.
SELECT DISTINCT toString(workspace_id) AS workspace_id, anonymous_id, _partition_id AS partition
FROM events
WHERE user_id = ''
  AND anonymous_id IN {visitors:Array(String)}
  AND (identity(toString(workspace_id)), anonymous_id) IN arrayZip({workspaces:Array(String)}, {visitors:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {visitors:Array(String)}), (toString(workspace_id), anonymous_id))
  ]

-- name: erase-events
-- Removes rows of one partition by rewriting the parts that hold them. A lightweight DELETE would only mask them, and
-- while any row of the table is masked, ClickHouse counts by reading instead of by the sorting key or an index.
-- The mutation may outlive the session and the writer, so it must not refer to temporary tables.
ALTER TABLE events DELETE IN PARTITION ID {partition:String}
WHERE user_id IN {users:Array(String)}
  AND (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]

-- name: erase-events-of-visitors
-- As erase-events, of anonymous visitors.
ALTER TABLE events DELETE IN PARTITION ID {partition:String}
WHERE user_id = ''
  AND anonymous_id IN {visitors:Array(String)}
  AND (workspace_id, anonymous_id) IN arrayZip({workspaces:Array(String)}, {visitors:Array(String)})
  AND toUnixTimestamp64Micro(received_at) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {visitors:Array(String)}), (toString(workspace_id), anonymous_id))
  ]

-- name: erase-properties
ALTER TABLE entity_properties DELETE
WHERE kind = 'user'
  AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND multiIf(
    once_week > 1, once_week * 604800000000 + register.version,
    register.version BETWEEN 1000000000000 AND 946684799999999, toUInt64(2650000000000000 - register.version),
    register.version
  ) <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
  ]

-- name: erase-sightings
ALTER TABLE user_sightings DELETE
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]

-- name: erase-links
-- With what says whom a user became.
ALTER TABLE identity_links DELETE
WHERE user_id IN {users:Array(String)}
  AND (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]
  OR (workspace_id, anonymous_id) IN arrayZip({workspaces:Array(String)}, arrayMap(user -> concat('\xEF\xBF\xBF', user), {users:Array(String)}))
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), substring(anonymous_id, 4)))
  ]

-- name: find-mixed-users
-- The users of a pass who came back, and of whom a row may hold times from before their deletion and after it: it begins
-- before the deletion and goes on after it (store-statements.ts). With the newest version of these rows.
SELECT workspace AS workspace_id, user AS user_id, max(version) AS newest_version
FROM (
  SELECT
    toString(workspace_id) AS workspace,
    id AS user,
    toUInt64OrZero(other_id) AS begins_after,
    version,
    {versions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
    ] AS deleted_version
  FROM entities
  WHERE kind = 'user' AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
)
WHERE begins_after < deleted_version AND version > deleted_version
GROUP BY workspace, user

-- name: store-returned-users
-- Stores what erase-entities needs to remove the rows of find-mixed-users: a row of each user that begins after the
-- deletion, with the times since then. All events and sightings of the old rows are stored by now, since their writers did
-- not know the deletion, but for those of a writer that ended amid a batch which nobody has stored since. An event may have
-- expired and be erased; without any, the time of the last change stands in, as in what query-api shows. Where the old rows
-- are removed already, nothing is stored.
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
SELECT
  workspace,
  'user',
  user,
  toString(deleted_version),
  if(min(is_old_row), max(seen_at), minIf(seen_at, NOT is_old_row)),
  if(min(is_old_row), max(seen_at), maxIf(seen_at, NOT is_old_row)),
  maxIf(version, is_old_row)
FROM (
  SELECT
    *,
    {versions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (workspace, user))
    ] AS deleted_version
  FROM (
    SELECT
      toString(workspace_id) AS workspace,
      user_id AS user,
      timestamp AS seen_at,
      toUInt64(toUnixTimestamp64Micro(received_at)) AS version,
      0 AS begins_after,
      0 AS is_old_row
    FROM events
    WHERE user_id IN {users:Array(String)}
      -- find-deleted-rows explains it.
      AND (identity(toString(workspace_id)), user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    UNION ALL
    SELECT
      toString(workspace_id),
      user_id,
      fromUnixTimestamp64Milli(toInt64(intDiv(version, 1000)), 'UTC'),
      version,
      0,
      0
    FROM user_sightings
    WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    UNION ALL
    SELECT
      toString(workspace_id),
      id,
      fromUnixTimestamp64Milli(toInt64(intDiv(version, 1000)), 'UTC'),
      version,
      toUInt64OrZero(other_id),
      1
    FROM entities
    WHERE kind = 'user' AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  )
)
WHERE begins_after < deleted_version AND version > deleted_version
GROUP BY workspace, user, deleted_version
HAVING max(is_old_row)

-- name: erase-entities
-- The users and their memberships, from both sides. What is of a user who came back after the deletion stays: rows of the
-- user that begin after it, and memberships that go on after it. Of rows of the user that begin before it, those up to
-- `replacedVersions` are removed, which store-returned-users has replaced where they go on after it.
ALTER TABLE entities DELETE
WHERE kind = 'user'
    AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    AND toUInt64OrZero(other_id) < {versions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
    ]
    AND version <= {replacedVersions:Array(Int64)}[
      indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), id))
    ]
  OR (
    kind = 'membership' AND (workspace_id, id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
    OR kind = 'member' AND (workspace_id, other_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  )
  AND version <= {versions:Array(Int64)}[
    indexOf(
      arrayZip({workspaces:Array(String)}, {users:Array(String)}),
      (toString(workspace_id), if(kind = 'member', other_id, id))
    )
  ]

-- name: erase-dead-letters
ALTER TABLE dead_letters DELETE
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (workspace_id, user_id))
  ]

-- name: forget-erased
-- Removes deletions that are erased. A later deletion of the same user stays.
ALTER TABLE pending_deletions DELETE
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {users:Array(String)})
  AND version <= {versions:Array(Int64)}[
    indexOf(arrayZip({workspaces:Array(String)}, {users:Array(String)}), (toString(workspace_id), user_id))
  ]

-- name: find-unsettled-deletions
-- The oldest deletions of users after a cursor whose visitors may not be deleted yet, of which every fact up to the deletion is stored: what was
-- accepted by then has been in the log for `delayMs`, through which all partitions are stored.
SELECT workspace_id, user_id, version
FROM (
  SELECT workspace_id, user_id, version
  FROM identity_deletions
  WHERE (workspace_id, user_id) IN (SELECT workspace_id, user_id FROM pending_deletions)
  GROUP BY workspace_id, user_id, version
  HAVING max(settled_at) = toDateTime64(0, 3, 'UTC')
)
WHERE intDiv(version, 1000) + {delayMs:UInt64} <= (SELECT toUnixTimestamp64Milli(max(through)) FROM storing_progress)
  AND (version, workspace_id, user_id) > ({afterVersion:UInt64}, {afterWorkspace:String}, {afterUser:String})
ORDER BY version, workspace_id, user_id
LIMIT {deletionsMax:UInt32}

-- name: settle-deletions
-- The visitors of these users are deleted, too.
INSERT INTO identity_deletions (workspace_id, user_id, version, settled_at)
SELECT deletion.1, deletion.2, deletion.3, now64(3)
FROM (
  SELECT arrayJoin(arrayZip({workspaces:Array(String)}, {users:Array(String)}, {versions:Array(UInt64)})) AS deletion
)

-- name: find-expired-events
-- The partitions with events of some workspaces before a time. The sorting key finds them.
SELECT DISTINCT _partition_id AS partition
FROM events
WHERE workspace_id IN {workspaces:Array(String)}
  AND timestamp < fromUnixTimestamp64Milli({beforeMs:Int64})

-- name: find-expired-events-of-others
-- The partitions with events before a time of all but some workspaces.
SELECT DISTINCT _partition_id AS partition
FROM events
WHERE workspace_id NOT IN {workspaces:Array(String)}
  AND timestamp < fromUnixTimestamp64Milli({beforeMs:Int64})

-- name: erase-expired-events
-- Removes the expired events of one partition by rewriting the parts that hold them: erase-events says why. Each
-- workspace has a time before which its events are erased; those that are not named have that of all others.
ALTER TABLE events DELETE IN PARTITION ID {partition:String}
WHERE toUnixTimestamp64Milli(timestamp)
  < transform(toString(workspace_id), {workspaces:Array(String)}, {beforeMs:Array(Int64)}, {othersBeforeMs:Int64})

-- name: read-declared-properties
-- What each workspace has declared as fast last. The set of one that has withdrawn everything is 0.
SELECT workspace_id AS workspace, toString(row_set) AS set, names
FROM (
  SELECT workspace_id, row_set, names FROM console_fast_properties ORDER BY declared_at DESC LIMIT 1 BY workspace_id
)
ORDER BY workspace

-- name: find-unfilled-columns
-- The partitions with events of some workspaces whose columns have other properties than these have declared, the newest first,
-- without those that have parts on the cold volume.
SELECT DISTINCT _partition_id AS partition
FROM events
WHERE workspace_id IN {workspaces:Array(String)}
  -- The lowest bits say which columns the text is read of.
  AND bitAnd(fast_set, 0xffffffffffff0000) != transform(
    toString(workspace_id), {workspaces:Array(String)}, arrayMap(one -> toUInt64(one), {sets:Array(String)}), toUInt64(0)
  )
  AND _partition_id NOT IN (
    SELECT partition_id
    FROM system.parts
    WHERE database = currentDatabase() AND table = 'events' AND active AND disk_name IN (
      SELECT arrayJoin(disks) FROM system.storage_policies WHERE policy_name = 'sluice' AND volume_name = 'cold'
    )
  )
ORDER BY partition DESC

-- name: read-events-policy
-- The storage policy of the events, and the volumes of the one with a cold volume.
SELECT
  (SELECT storage_policy FROM system.tables WHERE database = currentDatabase() AND name = 'events') AS policy,
  volume_name AS volume,
  disks,
  toFloat64(move_factor) AS move_factor
FROM system.storage_policies
WHERE policy_name = 'sluice'
ORDER BY volume_priority

-- name: find-moves
-- A part that is being moved, by a statement for which nobody waits any more.
SELECT part_name AS part, target_disk_name AS disk
FROM system.moves
WHERE database = currentDatabase() AND table = 'events'
LIMIT 1

-- name: find-misplaced-parts
-- The parts of `events` that lie on the other volume than that of their partition, which is a month or, of late history, a
-- year: it is due when its last day is more than so many days ago. A part that is young may still be merged with others.
SELECT part, is_due
FROM (
  SELECT
    name AS part,
    partition_id,
    disk_name IN (
      SELECT arrayJoin(disks) FROM system.storage_policies WHERE policy_name = 'sluice' AND volume_name = 'cold'
    ) AS is_cold,
    dateDiff(
      'day',
      toLastDayOfMonth(
        makeDate(toUInt16(left(partition_id, 4)), if(length(partition_id) = 4, 12, toUInt8(right(partition_id, 2))), 1)
      ),
      toDate(now('UTC'))
    ) > {days:Int64} AS is_due
  FROM system.parts
  WHERE database = currentDatabase()
    AND table = 'events'
    AND active
    AND modification_time <= now() - toIntervalMillisecond({quietMs:UInt64})
)
WHERE is_cold != is_due
ORDER BY partition_id, part

-- name: move-to-cold-volume
ALTER TABLE events MOVE PART {part:String} TO VOLUME 'cold'

-- name: move-back
ALTER TABLE events MOVE PART {part:String} TO VOLUME 'default'

-- name: find-waiting-events
-- The months of late events that wait in `dead_letters` for the cold volume, and those of events that were sent again so long ago that
-- they are stored. A state so young does not count: an insert that began before it may still be running.
WITH now64(3, 'UTC') - toIntervalMillisecond({keptMs:UInt64}) AS kept_from
SELECT DISTINCT month, sent_at IS NOT NULL AS is_sent, toString(kept_from) AS sent_before
FROM (
  SELECT
    any(toUInt32(toYYYYMM(fromUnixTimestamp64Milli(JSONExtractInt(row, 'timestamp'), 'UTC')))) AS month,
    argMax(tuple(replayed_at), state_at).1 AS sent_at,
    max(state_at) AS newest
  FROM dead_letters
  WHERE kind = 'events' AND reason = {reason:String}
  GROUP BY id
)
WHERE if(sent_at IS NULL, newest < now64(6, 'UTC') - toIntervalMillisecond({delayMs:UInt64}), sent_at < kept_from)
ORDER BY month

-- name: stage-waiting-events
-- Those of one month that wait, with the time at which they were read.
CREATE OR REPLACE TEMPORARY TABLE waiting ENGINE = Memory AS
SELECT
  id,
  any(JSONExtractString(row, 'workspace_id')) AS workspace,
  any(fromUnixTimestamp64Milli(JSONExtractInt(row, 'timestamp'), 'UTC')) AS time,
  any(toUUIDOrZero(JSONExtractString(row, 'uuid'))) AS uuid,
  now64(6, 'UTC') AS read_at
FROM dead_letters
WHERE kind = 'events' AND reason = {reason:String}
GROUP BY id
HAVING argMax(tuple(replayed_at), state_at).1 IS NULL
  AND max(state_at) < now64(6, 'UTC') - toIntervalMillisecond({delayMs:UInt64})
  AND toYYYYMM(time) = {month:UInt32}

-- name: look-up-waiting-events
-- As find-repeats does: it fails while the cold volume does not answer.
SELECT count() AS stored
FROM events
PREWHERE timestamp IN (SELECT time FROM waiting)
WHERE (workspace_id, timestamp, uuid) IN (SELECT workspace, time, uuid FROM waiting)

-- name: read-waiting-events
-- In the order of the log: which of several with one key is stored must not depend on the server.
SELECT topic, partition, base64Encode(row) AS row64
FROM dead_letters
WHERE id IN (SELECT id FROM waiting)
ORDER BY topic, partition, offset, line
LIMIT 1 BY id

-- name: mark-sent-events
-- One that has failed again by now has a newer state, and waits again.
INSERT INTO dead_letters
SELECT * REPLACE ((SELECT any(read_at) FROM waiting) AS state_at, now64(3, 'UTC') AS replayed_at)
FROM dead_letters
WHERE id IN (SELECT id FROM waiting)
ORDER BY id, state_at DESC
LIMIT 1 BY id

-- name: remove-sent-states
-- The states from before they were sent of events that were sent, and have not failed again. ClickHouse looks the sub-select up for each part
-- anew, so what it finds must not be what the mutation removes: the newest states are removed after these.
ALTER TABLE dead_letters DELETE
WHERE kind = 'events'
  AND reason = {reason:String}
  AND replayed_at IS NULL
  AND id IN (
    SELECT id
    FROM dead_letters
    WHERE kind = 'events' AND reason = {reason:String}
    GROUP BY id
    HAVING argMax(tuple(replayed_at), state_at).1 < toDateTime64({sentBefore:String}, 3, 'UTC')
  )

-- name: remove-sent-events
ALTER TABLE dead_letters DELETE
WHERE kind = 'events' AND reason = {reason:String} AND replayed_at < toDateTime64({sentBefore:String}, 3, 'UTC')

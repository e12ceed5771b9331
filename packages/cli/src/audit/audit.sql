-- The statements of an audit. `workspace` is the only one that it looks at, or empty; `share` and `shares` are those of isInShare.

-- name: read-deletions
-- All that may hide rows of the window.
SELECT toString(workspace_id), user_id, version
FROM user_deletions
WHERE version >= {since:UInt64} AND ({workspace:String} = '' OR workspace_id = {workspace:String})

-- name: read-events
-- What is stored with a receipt in the window. PARTITION BY names `received_at`, so parts without any are not read.
SELECT toString(workspace_id), timestamp, uuid, received_at
FROM events
WHERE received_at >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND received_at < fromUnixTimestamp64Micro({to:Int64}, 'UTC')
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})
  AND ({shares:UInt32} = 1 OR CRC32(concat(toString(uuid), '/audit')) % {shares:UInt32} = {share:UInt32} - 1)

-- name: read-registers
-- The registers that changed since the window began. 0075-set-once-by-weeks.md explains the weeks.
SELECT
  MD5(concat(toString(workspace_id), '\0', toString(kind), '\0', id, '\0', property)),
  toUInt32(once_week),
  tupleElement(register, 'version')
FROM entity_properties
WHERE (once_week = 0 AND tupleElement(register, 'version') >= {since:UInt64} OR once_week > 1 AND once_week >= {week:UInt16})
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})
  AND (
    {shares:UInt32} = 1
    OR CRC32(concat(toString(workspace_id), '\0', toString(kind), '\0', id, '/audit')) % {shares:UInt32} = {share:UInt32} - 1
  )
UNION ALL
-- What links visitors. The user stands for the property.
SELECT MD5(concat(toString(workspace_id), '\0visitor\0', anonymous_id, '\0', user_id)), toUInt32(0), version
FROM identity_links
WHERE version >= {since:UInt64}
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})
  AND (
    {shares:UInt32} = 1
    OR CRC32(concat(toString(workspace_id), '\0visitor\0', anonymous_id, '/audit')) % {shares:UInt32} = {share:UInt32} - 1
  )

-- name: read-entities
SELECT MD5(concat(toString(workspace_id), '\0', toString(kind), '\0', id)), toUInt32({seen:UInt32}), version
FROM entities
WHERE kind IN ('user', 'organization') AND version >= {since:UInt64}
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})
  AND (
    {shares:UInt32} = 1
    OR CRC32(concat(toString(workspace_id), '\0', toString(kind), '\0', id, '/audit')) % {shares:UInt32} = {share:UInt32} - 1
  )

-- name: find-events
-- Stored events with some keys. The sorting key finds them.
SELECT
  toString(workspace_id) AS workspace,
  toString(uuid) AS event,
  toUnixTimestamp64Milli(timestamp) AS ms,
  toUnixTimestamp64Micro(received_at) AS received,
  if(user_id = '', concat('\xEF\xBF\xBF', anonymous_id), user_id) AS person
FROM events
PREWHERE timestamp IN (SELECT fromUnixTimestamp64Milli(arrayJoin({times:Array(Int64)}), 'UTC'))
WHERE (workspace_id, timestamp, uuid) IN (
  SELECT key.1, fromUnixTimestamp64Milli(key.2, 'UTC'), toUUID(key.3)
  FROM (SELECT arrayJoin(arrayZip({workspaces:Array(String)}, {times:Array(Int64)}, {uuids:Array(String)})) AS key)
)

-- name: find-stamped-events
-- Stored events that are timed by their receipt, with some uuids, within ten minutes of some times.
SELECT
  toString(workspace_id) AS workspace,
  toString(uuid) AS event,
  toUnixTimestamp64Milli(timestamp) AS ms,
  toUnixTimestamp64Micro(received_at) AS received,
  if(user_id = '', concat('\xEF\xBF\xBF', anonymous_id), user_id) AS person
FROM events
WHERE timestamp BETWEEN fromUnixTimestamp64Milli({firstMs:Int64}, 'UTC') - INTERVAL 10 MINUTE
    AND fromUnixTimestamp64Milli({lastMs:Int64}, 'UTC') + INTERVAL 10 MINUTE
  AND (workspace_id, uuid) IN (
    SELECT key.1, toUUID(key.2) FROM (SELECT arrayJoin(arrayZip({workspaces:Array(String)}, {uuids:Array(String)})) AS key)
  )
  AND toUnixTimestamp64Milli(timestamp) = intDiv(toUnixTimestamp64Micro(received_at), 1000)

-- name: find-deletions
SELECT toString(workspace_id) AS workspace, user_id AS person, max(version) AS version
FROM user_deletions
WHERE (workspace_id, user_id) IN arrayZip({workspaces:Array(String)}, {persons:Array(String)})
GROUP BY workspace_id, user_id

-- name: newest-deletions
-- The newest deletion of each of some workspaces.
SELECT toString(workspace_id) AS workspace, max(version) AS version
FROM user_deletions
WHERE workspace_id IN {workspaces:Array(String)}
GROUP BY workspace_id

-- name: find-dead-letters
SELECT DISTINCT id FROM dead_letters WHERE id IN {ids:Array(String)}

-- name: find-registers
SELECT
  toString(workspace_id) AS workspace, toString(kind) AS entity_kind, id, property, once_week AS week,
  max(tupleElement(register, 'version')) AS version
FROM entity_properties
WHERE (workspace_id, kind, id, property)
  IN arrayZip({workspaces:Array(String)}, {kinds:Array(String)}, {ids:Array(String)}, {properties:Array(String)})
GROUP BY workspace_id, kind, id, property, once_week
UNION ALL
SELECT toString(workspace_id), 'visitor', anonymous_id, user_id, 0, max(version)
FROM identity_links
WHERE (workspace_id, 'visitor', anonymous_id, user_id)
  IN arrayZip({workspaces:Array(String)}, {kinds:Array(String)}, {ids:Array(String)}, {properties:Array(String)})
GROUP BY workspace_id, anonymous_id, user_id

-- name: find-entities
SELECT toString(workspace_id) AS workspace, toString(kind) AS entity_kind, id, max(version) AS version
FROM entities
WHERE (workspace_id, kind, id) IN arrayZip({workspaces:Array(String)}, {kinds:Array(String)}, {ids:Array(String)})
GROUP BY workspace_id, kind, id

-- name: find-duplicates
-- Keys that stand more than once, in a range of times. The order of the aggregation is that of the sorting key, so that it needs
-- next to no memory.
SELECT
  toString(workspace_id) AS workspace,
  toUnixTimestamp64Milli(timestamp) AS ms,
  toString(any(uuid)) AS event
FROM events
WHERE timestamp >= fromUnixTimestamp64Milli({fromMs:Int64}, 'UTC') AND timestamp < fromUnixTimestamp64Milli({toMs:Int64}, 'UTC')
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})
  AND ({shares:UInt32} = 1 OR CRC32(concat(toString(uuid), '/audit')) % {shares:UInt32} = {share:UInt32} - 1)
GROUP BY workspace_id, timestamp, toUInt128(uuid)
HAVING count() > 1
LIMIT {limit:UInt32}
SETTINGS optimize_aggregation_in_order = 1

-- name: read-positions
SELECT topic, partition, toString(next_offset) AS next
FROM writer_positions FINAL
WHERE group_id = {group:String}

-- name: read-halts
-- The partitions that are halted.
SELECT topic, partition, detail
FROM writer_halts FINAL
WHERE group_id = {group:String} AND resumed_at IS NULL

-- name: read-gaps
-- The gaps between the log and what is stored. Those of the newest halts are not kept elsewhere yet.
SELECT DISTINCT topic, partition, reason, detail, toUnixTimestamp64Milli(noticed_at) AS noticed
FROM (
  SELECT topic, partition, reason, detail, noticed_at FROM log_gaps
  UNION ALL
  SELECT topic, partition, reason, detail, halted_at FROM writer_halts FINAL WHERE group_id = {group:String} AND reason != 'by hand'
)
ORDER BY topic, partition, noticed

-- name: read-given-up
SELECT topic, partition, toString(first_offset) AS first, toString(last_offset) AS last, toString(given_up_at) AS at
FROM given_up_messages

-- name: read-retention
SELECT workspace_id AS workspace, days FROM retention FINAL WHERE days > 0

-- name: read-partition-counts
SELECT max(partitions) AS partitions FROM topic_partitions WHERE topic = {topic:String}

-- name: read-clock
SELECT toUnixTimestamp64Milli(now64(3)) AS now

-- name: audits-before
-- The complete audits of everything, in their order.
SELECT
  toUnixTimestamp(since) AS began, toUnixTimestamp(until) AS ended, toUnixTimestamp(balanced_through) AS balanced,
  arrayExists(note -> startsWith(note, {cut:String}), notes) AS was_cut
FROM audits FINAL
WHERE finished_at IS NOT NULL AND workspace_id = '' AND shares = 1
ORDER BY finished_at

-- name: record-audit
INSERT INTO audits (
  id, started_at, finished_at, since, until, workspace_id, share, shares, sluice_version, accepted, missing, invented, duplicates,
  balanced_through, notes, state_at
)
SELECT
  {id:UUID}, fromUnixTimestamp64Milli({startedMs:Int64}, 'UTC'), if({finished:Bool}, now64(6), NULL),
  fromUnixTimestamp({since:Int64}), fromUnixTimestamp({until:Int64}), {workspace:String}, {share:UInt32}, {shares:UInt32},
  {version:String}, {accepted:UInt64}, {missing:UInt64}, {invented:UInt64}, {duplicates:UInt64},
  fromUnixTimestamp({balanced:Int64}), {notes:Array(String)}, greatest(now64(6), max(state_at) + toIntervalMicrosecond(1))
FROM audits
WHERE id = {id:UUID}

-- name: audited-before
-- The hours of the window that an audit before has written.
SELECT DISTINCT toString(workspace_id) AS workspace, toUnixTimestamp(hour) AS began, toString(kind) AS of_kind
FROM audited_hours
WHERE hour >= fromUnixTimestamp({since:Int64}) AND hour < fromUnixTimestamp({until:Int64})
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})

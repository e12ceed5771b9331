-- Whose the database is, and which epoch of its writers is the newest.
--
-- A writer takes over at one server, and stores there alone. Its statements name that server, and another one refuses them, as it may get them behind
-- a load balancer: statements.ts says what AT_OWN_SERVER stands for.

-- name: record-group
-- Records the consumer group of the database if none is recorded yet.
INSERT INTO writer_groups (group_id)
SELECT {group:String}
WHERE (SELECT count() FROM writer_groups) = 0

-- name: read-groups
SELECT DISTINCT group_id AS groupId FROM writer_groups ORDER BY groupId

-- name: record-identity
-- Records whose the database is, if nothing is recorded yet.
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT generateUUIDv4(), {server:String}, {group:String}, {partitions:String}, 'complete', '', now64(6)
WHERE (SELECT count() FROM database_identity) = 0

-- name: record-server-name
-- Names the server of a database that was there before the file of servers.
-- The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT id, {server:String}, group_id, partitions, state, detail, greatest(now64(6), recorded_at + toIntervalMicrosecond(1))
FROM database_identity
ORDER BY recorded_at DESC, id
LIMIT 1

-- name: read-identity
-- The newest row first, each with the server that answers.
SELECT
  toString(id) AS id,
  ANSWERING_SERVER AS answering,
  server, group_id AS groupId, partitions, state, detail
FROM database_identity
ORDER BY recorded_at DESC, id

-- name: newest-epoch
-- The newest epoch, with the leaders of the generations that have recorded it.
SELECT incarnation, generation, groupUniqArray(leader_id) AS leaderIds
FROM writer_epochs
WHERE group_id = {group:String}
  AND AT_OWN_SERVER
GROUP BY incarnation, generation
ORDER BY incarnation DESC, generation DESC
LIMIT 1

-- name: record-epoch
INSERT INTO writer_epochs (group_id, incarnation, generation, leader_id)
SELECT {group:String}, {incarnation:UInt32}, {generation:UInt32}, {leaderId:String}
WHERE AT_OWN_SERVER

-- name: end-older-statements
-- Ends every statement of this group's writers that belongs to another epoch. Statements carry their epoch in the query
-- id. SYNC: returns when they have ended.
KILL QUERY
WHERE AT_OWN_SERVER
  AND startsWith(query_id, {groupPrefix:String})
  AND NOT startsWith(query_id, {epochPrefix:String})
SYNC

-- name: find-longest-statement
-- For how long the batches of this group's writers have been running at this server, at most; in seconds.
SELECT max(elapsed) AS seconds
FROM system.processes
WHERE startsWith(query_id, {groupPrefix:String})

-- name: look-at-replica
-- Whether nothing can be stored at this replica, and by how many seconds it is behind the others.
SELECT max(is_readonly OR is_session_expired) AS stuck, toUInt32(max(absolute_delay)) AS behind
FROM system.replicas
WHERE database = currentDatabase()

-- name: count-undecided-parts
-- How many parts of events this replica has yet to look for in Keeper: their inserts have ended, and nobody knows whether they were committed.
-- Until then reads find them here. One that Keeper does not have is removed, some five minutes after its insert.
SELECT toUInt32(sum(parts_to_check)) AS parts
FROM system.replicas
WHERE database = currentDatabase() AND table = 'events'

-- name: count-replicas
-- How many replicas of the tables Keeper knows; 0 where this replica has no session of Keeper. And what time it is here.
SELECT max(total_replicas) AS replicas, toUnixTimestamp64Milli(now64(3)) AS now_ms
FROM system.replicas
WHERE database = currentDatabase()

-- name: find-statements-everywhere
-- All replicas that share the rows of tables, and how many statements of the group run at each, but for those of one epoch or attempt, that
-- began before a time. Each has this one at least. Fails where a replica of the cluster does not answer.
SELECT
  ANSWERING_SERVER AS replica,
  toUInt32(countIf(
    startsWith(query_id, {prefix:String})
      AND NOT ({except:String} != '' AND startsWith(query_id, {except:String}))
      AND elapsed * 1000 >= {ageMs:UInt64}
  )) AS running
FROM clusterAllReplicas(default, system.processes)
GROUP BY replica

-- name: end-statements-everywhere
-- Ends these at all replicas. SYNC: returns when they have ended. Fails where one does not answer.
KILL QUERY ON CLUSTER default
WHERE startsWith(query_id, {prefix:String})
  AND NOT ({except:String} != '' AND startsWith(query_id, {except:String}))
SYNC

-- name: read-sessions
-- For how long each of these replicas has had its session of Keeper, and how long Keeper keeps one without a sign of life.
SELECT
  ANSWERING_SERVER AS replica,
  toFloat64(min(session_uptime_elapsed_seconds) * 1000) AS ageMs,
  toFloat64(max(session_timeout_ms)) AS timeoutMs
FROM clusterAllReplicas(default, system.zookeeper_connection)
WHERE NOT is_expired
GROUP BY replica

-- name: read-replicas
-- Where statements may store, and where they may not any more, with the time since then.
SELECT
  replica, is_gone AS isGone,
  toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(changed_at) AS ageMs
FROM writer_replicas FINAL

-- name: record-replicas
-- The new time is above the stored one, also where the clocks of replicas differ: the newest row counts.
INSERT INTO writer_replicas (replica, is_gone, changed_at)
SELECT named.replica, {isGone:Bool}, greatest(now64(6), known.changed_at + toIntervalMicrosecond(1))
FROM (SELECT arrayJoin({replicas:Array(String)}) AS replica) AS named
LEFT JOIN (SELECT replica, max(writer_replicas.changed_at) AS changed_at FROM writer_replicas GROUP BY replica) AS known
USING (replica)

-- name: read-time
SELECT toUnixTimestamp64Milli(now64(3)) AS nowMs

-- name: close-session
-- Sent with the parameter that closes the session when the statement has ended.
SELECT AT_OWN_SERVER

-- How far each partition is stored, and which partitions are halted. ownership.sql says why statements name a server.

-- name: read-partitions
SELECT
  topic, partition,
  toString(next_offset) AS nextOffset, fingerprint, leader_epoch AS leaderEpoch,
  NULL AS reason, NULL AS detail, NULL AS firstOffset, NULL AS lastOffset, NULL AS haltedAt
FROM writer_positions FINAL
WHERE group_id = {group:String}
  AND AT_OWN_SERVER
UNION ALL
SELECT
  topic, partition,
  NULL, NULL, NULL,
  reason, detail, toString(first_offset), toString(last_offset), toString(halted_at)
FROM writer_halts FINAL
WHERE group_id = {group:String} AND resumed_at IS NULL

-- name: store-positions
-- Fails when a newer epoch is recorded, as store-events does: a late position would overwrite the one of the new owner.
-- Fails also when ClickHouse does not have what comes before: its tables were emptied, or restored from a backup, while
-- this writer was running. A partition without a position has nothing stored.
-- The newest row counts, by `stored_at`. It is no time of a clock: it grows with the offset. Of two statements that run at once, as when a request
-- arrives late while what comes after it is being stored, the one with the higher offset counts, whichever ends last.
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation, stored_at
)
SELECT
  {group:String}, topic, partition, position.4, position.5, position.6, {incarnation:UInt32}, {generation:UInt32},
  stored.stored_at + toIntervalMicrosecond(1 + position.4 - stored.next_offset)
FROM (
  SELECT
    arrayJoin(arrayZip(
      {topics:Array(String)}, {partitions:Array(UInt32)}, {from:Array(Int64)}, {offsets:Array(Int64)},
      {fingerprints:Array(String)}, {leaderEpochs:Array(Int32)}
    )) AS position,
    position.1 AS topic,
    position.2 AS partition
) AS new
LEFT JOIN (
  SELECT topic, partition, next_offset, stored_at FROM writer_positions FINAL WHERE group_id = {group:String}
) AS stored USING (topic, partition)
WHERE AT_OWN_SERVER
  AND throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0
  AND throwIf(
    stored.next_offset < position.3,
    'ClickHouse does not have the stored position any more'
  ) = 0
  -- A request that arrives late, when what comes after it is stored already, must not set the position back. 1970: there is none.
  AND (position.4 > stored.next_offset OR stored.stored_at = toDateTime64(0, 6, 'UTC'))

-- name: choose-position
-- The position that an operator chose. It has no fingerprint, because the log before it is not compared with anything.
-- The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation, stored_at
)
SELECT
  {group:String}, {topic:String}, {partition:UInt32}, {offset:Int64}, '', -1, 0, 0,
  greatest(now64(6), max(stored_at) + toIntervalMicrosecond(1))
FROM writer_positions
WHERE group_id = {group:String} AND topic = {topic:String} AND partition = {partition:UInt32}

-- name: record-topic-partitions
-- Records the number of partitions of each topic that has none recorded yet.
INSERT INTO topic_partitions (topic, partitions)
SELECT arrayJoin({topics:Array(String)}) AS wanted, {partitions:UInt32}
WHERE wanted NOT IN (SELECT topic FROM topic_partitions)

-- name: read-topic-partitions
SELECT DISTINCT topic, partitions FROM topic_partitions WHERE topic IN {topics:Array(String)} ORDER BY topic, partitions

-- name: record-grown-topics
INSERT INTO topic_partitions (topic, partitions) SELECT arrayJoin({topics:Array(String)}), {partitions:UInt32}

-- name: forget-smaller-topics
ALTER TABLE topic_partitions DELETE WHERE topic IN {topics:Array(String)} AND partitions < {partitions:UInt32}

-- name: record-halt
-- Fails when a newer epoch is recorded than that of the writer, as store-positions does: it would halt a partition of the
-- new owner. An operator has no epoch (0).
-- The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO writer_halts (
  group_id, topic, partition, reason, detail, first_offset, last_offset, halted_at, state_at
)
SELECT
  {group:String}, {topic:String}, {partition:UInt32}, {reason:String}, {detail:String},
  {firstOffset:Nullable(Int64)}, {lastOffset:Nullable(Int64)}, now64(3),
  greatest(now64(6), max(state_at) + toIntervalMicrosecond(1))
FROM writer_halts
WHERE group_id = {group:String} AND topic = {topic:String} AND partition = {partition:UInt32}
  AND AT_OWN_SERVER
HAVING throwIf(
    {incarnation:UInt32} > 0
      AND (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
        > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0

-- name: keep-gap
-- Keeps why a writer halted the partition last, before the row that says so is replaced.
INSERT INTO log_gaps (topic, partition, reason, detail, first_offset, last_offset, noticed_at)
SELECT topic, partition, reason, detail, first_offset, last_offset, halted_at
FROM writer_halts FINAL
WHERE group_id = {group:String} AND topic = {topic:String} AND partition = {partition:UInt32} AND reason != 'by hand'

-- name: give-up-messages
-- Before the position is chosen: a resumption that ends in between is repeated.
INSERT INTO given_up_messages (group_id, topic, partition, first_offset, last_offset)
VALUES ({group:String}, {topic:String}, {partition:UInt32}, {first:Int64}, {last:Int64})

-- name: resume-partition
-- Repeats the newest row of the halt with the time and the offset at which it was resumed. The new time is above the
-- stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO writer_halts (
  group_id, topic, partition, reason, detail, first_offset, last_offset, halted_at, resumed_at, resume_offset, state_at
)
SELECT
  group_id, topic, partition, reason, detail, first_offset, last_offset, halted_at, now64(3), {offset:Nullable(Int64)},
  greatest(now64(6), state_at + toIntervalMicrosecond(1))
FROM writer_halts FINAL
WHERE group_id = {group:String} AND topic = {topic:String} AND partition = {partition:UInt32}

-- name: read-newest-block
-- The number of the newest block is part of the name of a part, as query-api reads it (tables.ts).
SELECT max(greatest(toUInt64OrZero(splitByChar('_', _part)[3]), toUInt64OrZero(splitByChar('_', _part)[5]))) AS newest
FROM (SELECT _part, count() FROM events GROUP BY _part)

-- name: record-progress
-- A statement of its own: the time must not be before the moment at which the newest block was read, however long ClickHouse
-- stood still in between.
INSERT INTO storing_progress (recorded_at, through, newest_block)
SELECT now64(3), fromUnixTimestamp64Milli({throughMs:Int64}), {newestBlock:UInt64}

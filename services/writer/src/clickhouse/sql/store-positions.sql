-- Fails when a newer epoch is recorded, as store-events does: a late position would overwrite the one of the new owner.
-- Fails also when ClickHouse does not have what comes before: its tables were emptied, or restored from a backup, while
-- this writer was running. A partition without a position has nothing stored.
-- The new time is above the stored one, also after ClickHouse's clock was set back: the newest row counts.
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation, stored_at
)
SELECT
  {group:String}, topic, partition, position.4, position.5, position.6, {incarnation:UInt32}, {generation:UInt32},
  greatest(now64(6), stored.stored_at + toIntervalMicrosecond(1))
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
WHERE throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0
  AND throwIf(
    stored.next_offset < position.3,
    'ClickHouse does not have the stored position any more'
  ) = 0
  -- A request that arrives late, when what comes after it is stored already, must not set the position back.
  AND position.4 >= stored.next_offset

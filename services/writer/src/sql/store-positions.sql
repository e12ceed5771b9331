-- Fails as the insert of events does when a newer generation of writers has begun: a late position would overwrite theirs.
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation
)
SELECT
  {group:String}, position.1, position.2, position.3, position.4, position.5,
  {incarnation:UInt32}, {generation:UInt32}
FROM (
  SELECT arrayJoin(arrayZip(
    {topics:Array(String)}, {partitions:Array(UInt32)}, {offsets:Array(Int64)},
    {fingerprints:Array(String)}, {leaderEpochs:Array(Int32)}
  )) AS position
)
WHERE throwIf(
    (SELECT max((incarnation, generation)) FROM writer_fences WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer generation of writers has begun'
  ) = 0

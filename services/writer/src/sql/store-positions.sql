-- Fails when a newer epoch is recorded, as store-events does: a late position would overwrite the one of the new owner.
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
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0

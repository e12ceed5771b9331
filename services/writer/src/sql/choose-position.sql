-- The position that an operator chose: without a fingerprint, since nothing of the log before it is relied on.
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation
)
SELECT {group:String}, {topic:String}, {partition:UInt32}, {offset:Int64}, '', -1, 0, 0

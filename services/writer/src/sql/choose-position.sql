-- The position that an operator chose. It has no fingerprint, because the log before it is not compared with anything.
INSERT INTO writer_positions (
  group_id, topic, partition, next_offset, fingerprint, leader_epoch, incarnation, generation
)
SELECT {group:String}, {topic:String}, {partition:UInt32}, {offset:Int64}, '', -1, 0, 0

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

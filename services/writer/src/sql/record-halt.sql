INSERT INTO writer_halts (group_id, topic, partition, reason, detail, first_offset, last_offset, halted_at)
SELECT
  {group:String}, {topic:String}, {partition:UInt32}, {reason:String}, {detail:String},
  {firstOffset:Nullable(Int64)}, {lastOffset:Nullable(Int64)}, now64(3)

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

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

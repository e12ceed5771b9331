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
HAVING throwIf(
    {incarnation:UInt32} > 0
      AND (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
        > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0

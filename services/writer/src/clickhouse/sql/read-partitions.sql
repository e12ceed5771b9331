SELECT
  topic, partition,
  toString(next_offset) AS nextOffset, fingerprint, leader_epoch AS leaderEpoch,
  reason, detail, toString(first_offset) AS firstOffset, toString(last_offset) AS lastOffset,
  toString(halted_at) AS haltedAt
FROM (
  SELECT topic, partition, next_offset, fingerprint, leader_epoch
  FROM writer_positions FINAL
  WHERE group_id = {group:String}
) AS positions
FULL JOIN (
  SELECT topic, partition, reason, detail, first_offset, last_offset, halted_at
  FROM writer_halts FINAL
  WHERE group_id = {group:String} AND resumed_at IS NULL
) AS halts USING (topic, partition)
ORDER BY topic, partition
-- A partition without a position has no offset, and one that is not halted has no reason.
SETTINGS join_use_nulls = 1

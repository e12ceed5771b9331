SELECT
  topic, partition, reason, detail, toString(first_offset) AS firstOffset, toString(last_offset) AS lastOffset,
  toString(halted_at) AS haltedAt
FROM writer_halts FINAL
WHERE group_id = {group:String} AND resumed_at IS NULL
ORDER BY topic, partition

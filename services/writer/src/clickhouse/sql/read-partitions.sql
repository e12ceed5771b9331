SELECT
  topic, partition,
  toString(next_offset) AS nextOffset, fingerprint, leader_epoch AS leaderEpoch,
  NULL AS reason, NULL AS detail, NULL AS firstOffset, NULL AS lastOffset, NULL AS haltedAt
FROM writer_positions FINAL
WHERE group_id = {group:String}
UNION ALL
SELECT
  topic, partition,
  NULL, NULL, NULL,
  reason, detail, toString(first_offset), toString(last_offset), toString(halted_at)
FROM writer_halts FINAL
WHERE group_id = {group:String} AND resumed_at IS NULL

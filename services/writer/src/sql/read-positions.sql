SELECT topic, partition, toString(next_offset) AS nextOffset, fingerprint, leader_epoch AS leaderEpoch
FROM writer_positions FINAL
WHERE group_id = {group:String}

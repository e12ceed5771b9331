-- Records the number of partitions of each topic that has none recorded yet.
INSERT INTO topic_partitions (topic, partitions)
SELECT arrayJoin({topics:Array(String)}) AS wanted, {partitions:UInt32}
WHERE wanted NOT IN (SELECT topic FROM topic_partitions)

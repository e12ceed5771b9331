INSERT INTO topic_partitions (topic, partitions) SELECT arrayJoin({topics:Array(String)}), {partitions:UInt32}

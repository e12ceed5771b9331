ALTER TABLE topic_partitions DELETE WHERE topic IN {topics:Array(String)} AND partitions < {partitions:UInt32}

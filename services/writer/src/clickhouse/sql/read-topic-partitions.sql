SELECT DISTINCT topic, partitions FROM topic_partitions WHERE topic IN {topics:Array(String)} ORDER BY topic, partitions

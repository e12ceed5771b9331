-- Records the consumer group of the database if none is recorded yet.
INSERT INTO writer_groups (group_id)
SELECT {group:String}
WHERE (SELECT count() FROM writer_groups) = 0

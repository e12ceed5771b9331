-- Records whose the database is, if nothing is recorded yet.
INSERT INTO database_identity (id, server, group_id, partitions, state, detail, recorded_at)
SELECT generateUUIDv4(), {server:String}, {group:String}, {partitions:String}, 'complete', '', now64(6)
WHERE (SELECT count() FROM database_identity) = 0

INSERT INTO dead_letters (id, kind, format, topic, partition, offset, line, reason, row)
SELECT id, kind, format, topic, partition, offset, line, reason, base64Decode(row)
FROM input('id String, kind String, format String, topic String, partition UInt32, offset Int64, line UInt32, reason String, row String')
FORMAT JSONEachRow

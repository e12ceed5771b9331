INSERT INTO staged_events FORMAT JSONEachRow

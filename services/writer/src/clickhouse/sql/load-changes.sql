INSERT INTO staged_changes FORMAT JSONEachRow

-- The groups whose writers have stored into this database before there was `writer_groups`.
INSERT INTO writer_groups (group_id) SELECT DISTINCT group_id FROM writer_epochs

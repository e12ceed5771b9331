SELECT DISTINCT group_id AS groupId FROM writer_groups ORDER BY groupId

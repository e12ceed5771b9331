SELECT incarnation, generation
FROM writer_epochs
WHERE group_id = {group:String}
ORDER BY incarnation DESC, generation DESC
LIMIT 1

SELECT incarnation, generation
FROM writer_fences
WHERE group_id = {group:String}
ORDER BY incarnation DESC, generation DESC
LIMIT 1

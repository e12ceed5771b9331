-- The newest epoch, with the leaders of the generations that have recorded it.
SELECT incarnation, generation, groupUniqArray(leader_id) AS leaderIds
FROM writer_epochs
WHERE group_id = {group:String}
GROUP BY incarnation, generation
ORDER BY incarnation DESC, generation DESC
LIMIT 1

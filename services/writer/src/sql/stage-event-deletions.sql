-- When the users of the staged events were last deleted. A view, not a table, so that every statement sees the
-- deletions of the moment when it begins: erasure relies on that. The index of so few rows costs more than it saves,
-- unless for few users.
CREATE TEMPORARY VIEW event_deletions AS
SELECT workspace_id, user_id, fromUnixTimestamp64Micro(toInt64(max(version)), 'UTC') AS deleted_at
FROM user_deletions
WHERE user_id IN (SELECT user_id FROM staged_events)
GROUP BY workspace_id, user_id
SETTINGS use_index_for_in_with_subqueries_max_values = 1000

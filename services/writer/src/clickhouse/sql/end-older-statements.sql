-- Ends every statement of this group's writers that belongs to another epoch. Statements carry their epoch in the query
-- id. SYNC: returns when they have ended.
KILL QUERY WHERE startsWith(query_id, {groupPrefix:String}) AND NOT startsWith(query_id, {epochPrefix:String}) SYNC

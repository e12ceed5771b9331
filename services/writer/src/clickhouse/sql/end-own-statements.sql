-- Ends every statement of one batch. SYNC: returns when they have ended.
KILL QUERY WHERE startsWith(query_id, {prefix:String}) SYNC

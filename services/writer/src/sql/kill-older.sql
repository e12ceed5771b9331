-- Every statement of the group's writers other than those of this generation.
KILL QUERY WHERE startsWith(query_id, {groupPrefix:String}) AND NOT startsWith(query_id, {epochPrefix:String}) SYNC

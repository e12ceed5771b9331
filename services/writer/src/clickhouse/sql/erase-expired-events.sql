-- Removes the expired events of one partition by rewriting the parts that hold them: erase-events.sql says why. Each
-- workspace has a time before which its events are erased; those that are not named have that of all others.
ALTER TABLE events DELETE IN PARTITION ID {partition:String}
WHERE toUnixTimestamp64Milli(timestamp)
  < transform(toString(workspace_id), {workspaces:Array(String)}, {beforeMs:Array(Int64)}, {othersBeforeMs:Int64})

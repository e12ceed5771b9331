-- The partitions with events before a time of all but some workspaces.
SELECT DISTINCT _partition_id AS partition
FROM events
WHERE workspace_id NOT IN {workspaces:Array(String)}
  AND timestamp < fromUnixTimestamp64Milli({beforeMs:Int64})

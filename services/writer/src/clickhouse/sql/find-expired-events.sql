-- The partitions with events of some workspaces before a time. The sorting key finds them.
SELECT DISTINCT _partition_id AS partition
FROM events
WHERE workspace_id IN {workspaces:Array(String)}
  AND timestamp < fromUnixTimestamp64Milli({beforeMs:Int64})

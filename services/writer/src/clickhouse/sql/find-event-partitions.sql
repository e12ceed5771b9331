-- The partitions of the events, and whether each holds the newest number that ClickHouse has given to an insert or a
-- mutation: after a restart, ClickHouse counts on from the highest number that it finds.
SELECT
  partition_id AS partition,
  max(greatest(max_block_number, data_version)) >= (
    SELECT max(greatest(max_block_number, data_version))
    FROM system.parts
    WHERE database = currentDatabase() AND table = 'events' AND active
  ) AS isNewest
FROM system.parts
WHERE database = currentDatabase() AND table = 'events' AND active
GROUP BY partition_id
ORDER BY partition_id

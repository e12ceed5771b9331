-- The disks of the server, and the tables of the database. It reads what ClickHouse knows of parts, never rows.
SELECT
  name AS disk, free_space AS free_bytes, total_space AS total_bytes,
  '' AS table, 0 AS parts, 0 AS parts_limit, 0 AS pending_mutations
FROM system.disks
UNION ALL
SELECT
  '', 0, 0,
  tables.name,
  parts_of.fullest,
  -- The setting of the table, where an operator has set one, else that of the server.
  coalesce(
    toUInt64OrNull(extract(tables.engine_full, 'parts_to_throw_insert = (\\d+)')),
    (SELECT toUInt64(value) FROM system.merge_tree_settings WHERE name = 'parts_to_throw_insert'),
    0
  ),
  mutations_of.pending
FROM system.tables AS tables
LEFT JOIN (
  SELECT table, max(active_parts) AS fullest
  FROM (
    SELECT table, partition_id, count() AS active_parts
    FROM system.parts
    WHERE database = currentDatabase() AND active
    GROUP BY table, partition_id
  )
  GROUP BY table
) AS parts_of ON parts_of.table = tables.name
LEFT JOIN (
  SELECT table, count() AS pending
  FROM system.mutations
  WHERE database = currentDatabase() AND NOT is_done
  GROUP BY table
) AS mutations_of ON mutations_of.table = tables.name
WHERE tables.database = currentDatabase() AND endsWith(tables.engine, 'MergeTree')

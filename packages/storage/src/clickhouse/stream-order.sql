-- In which order streams send the blocks of replicas, as migration 0065 says. ownership.sql says why statements name a server.

-- name: look-at-blocks
-- The parts of the events at this replica that have blocks outside of some ranges; when it was started, and the last record that it has.
SELECT
  (
    SELECT groupArray((toUInt32OrZero(partition_id), min_block_number, max_block_number))
    FROM system.parts
    WHERE database = currentDatabase() AND table = 'events' AND active
      AND NOT arrayExists(
        (partition, first, last) ->
          partition = toUInt32OrZero(partition_id) AND first <= min_block_number AND max_block_number <= last,
        {partitions:Array(UInt32)}, {firsts:Array(UInt64)}, {lasts:Array(UInt64)}
      )
  ) AS parts,
  toUInt32(toUnixTimestamp(now()) - uptime()) AS started_at,
  (SELECT max(record) FROM stream_order WHERE record >= {after:UInt64}) AS newest
WHERE AT_OWN_SERVER

-- name: read-reached
-- The number that this replica has reached, and all blocks that got any up to it.
SELECT number, partitions, firsts, lasts FROM stream_order WHERE record = 0 ORDER BY number DESC, recorded_at DESC LIMIT 1

-- name: read-records
SELECT DISTINCT record AS number, partitions, firsts, lasts
FROM stream_order
WHERE record > {after:UInt64}
ORDER BY record
LIMIT {limit:UInt32}

-- name: record-order
-- Fails when a newer epoch is recorded, as store-positions does: the new owner goes on with what it finds.
INSERT INTO stream_order (record, number, partitions, firsts, lasts, through, started_at)
SELECT row.1, row.2, row.3, row.4, row.5, fromUnixTimestamp64Milli(row.6), toDateTime({started_at:UInt32}, 'UTC')
FROM (
  SELECT arrayJoin(arrayZip(
    {records:Array(UInt64)}, {numbers:Array(UInt64)},
    {partitions:Array(Array(UInt32))}, {firsts:Array(Array(UInt64))}, {lasts:Array(Array(UInt64))},
    {throughs:Array(Int64)}
  )) AS row
)
WHERE AT_OWN_SERVER
  AND throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0

-- One register per property of a user or an organization. The highest version wins, and between equal versions the
-- highest change_id: the result is the same in whatever order, and however often, the changes arrive.
-- Read it with max(register) and GROUP BY: FINAL returns wrong rows when a query reads only subcolumns of the register.
CREATE TABLE IF NOT EXISTS entity_properties (
  workspace_id LowCardinality(String),
  kind LowCardinality(String),
  id String,
  property String,
  register SimpleAggregateFunction(
    max,
    Tuple(version UInt64, change_id UUID, operation Enum8('set' = 1, 'remove' = 2), value String)
  ),
  -- Finds candidates of a filter: a row may be older than another one of the same property. A token is a hash of the
  -- workspace, the kind, the property and a piece of the value, which is cut as 0001-events.sql cuts JSON. The empty
  -- piece finds every value. Hashes keep long values short, and the workspace keeps a token's rows few.
  INDEX values_text arrayMap(
    piece -> hex(toUInt32(sipHash64(workspace_id, kind, property, piece))),
    arrayPushFront(splitByChar(',', translate(tupleElement(register, 'value'), '{}[]', ',,,,')), '')
  ) TYPE text(tokenizer = 'array')
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, kind, id, property)
SETTINGS
  -- Single rows are cheap to read: 0001-events.sql explains it.
  index_granularity = 128,
  min_compress_block_size = 2048,
  max_compress_block_size = 4096,
  -- Durability: 0001-events.sql explains these settings.
  fsync_after_insert = 1,
  fsync_part_directory = 1,
  min_rows_to_fsync_after_merge = 1,
  min_free_disk_bytes_to_perform_insert = 67108864

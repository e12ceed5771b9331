-- One register a property of a user or an organization. The highest version wins, then the highest change_id: the
-- result is the same in whatever order, and however often, the changes arrive.
-- Fold it with max(register) and GROUP BY: FINAL gives a wrong result when only subcolumns of the register are read.
CREATE TABLE IF NOT EXISTS entity_properties (
  workspace_id LowCardinality(String),
  kind LowCardinality(String),
  id String,
  property String,
  register SimpleAggregateFunction(
    max,
    Tuple(version UInt64, change_id UUID, operation Enum8('set' = 1, 'remove' = 2), value String)
  )
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, kind, id, property)

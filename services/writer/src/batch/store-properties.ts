import { ONCE_WEEKS_OF_CHANGE, VERSION_OF_CHANGE } from '@sluice/shared/clickhouse/property-versions';
import type { Statement } from '../clickhouse/statement.ts';

// What is stored follows from the changes alone, not from the deletions that are known by then: one that is stored later, with
// a time before some of them, has to leave the same as one that was stored first.

export const STORE_PROPERTIES: Statement = {
  name: 'store-properties',
  sql: `
INSERT INTO entity_properties (workspace_id, kind, id, property, once_week, register)
SELECT
  workspace_id,
  kind,
  id,
  property,
  once_week,
  max((
    ${VERSION_OF_CHANGE},
    change_id,
    if(operation = 'set_once', 'set', operation),
    value
  )::Tuple(
    version UInt64, change_id UUID, operation Enum8('set' = 1, 'remove' = 2), value String
  ))
FROM staged_changes
ARRAY JOIN ${ONCE_WEEKS_OF_CHANGE} AS once_week
WHERE operation IN ('set', 'set_once', 'remove')
GROUP BY workspace_id, kind, id, property, once_week`,
};

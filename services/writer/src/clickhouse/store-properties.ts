import { setOnceVersionSql } from '@sluice/shared/clickhouse/property-versions';
import { deletedVersionOf, lastDeletionsOf, USERS_OF_CHANGES } from './last-deletions.ts';
import type { Statement } from './statement.ts';

// A register keeps the highest version. `set_once` counts only while nothing else changes the property, and of several the
// first that was accepted: its register has a version before the year 2000, which is below all others, and the higher the
// earlier it was accepted. property-versions.ts turns it back.
//
// What a user had before a deletion counts no longer, and must not win over what is set once after it. So that has the
// first version after the deletion, and of several the change_id of the first is the highest. Deletions are looked up only
// for batches with users who were ever deleted.

const SET_ONCE = setOnceVersionSql('version');

/** Where a user was never deleted. */
const NEVER_DELETED = { deletions: '', version: SET_ONCE, changeId: 'change_id' };

const HEX = 'hex(18446744073709551615 - staged_changes.version)';

const SINCE_DELETIONS = {
  deletions: `
WITH
  ${lastDeletionsOf(USERS_OF_CHANGES)} AS deletions,
  if(kind = 'user', ${deletedVersionOf(USERS_OF_CHANGES)}, 0) AS deleted_version`,
  version: `if(deleted_version > 0, deleted_version + 1, ${SET_ONCE})`,
  // Both halves: ClickHouse compares the second one first.
  changeId: `if(deleted_version > 0, toUUID(concat(${HEX}, ${HEX})), change_id)`,
};

function storeProperties({ deletions, version, changeId }: typeof NEVER_DELETED): string {
  return `
INSERT INTO entity_properties (workspace_id, kind, id, property, register)${deletions}
SELECT
  workspace_id,
  kind,
  id,
  property,
  max((
    if(operation = 'set_once', ${version}, version),
    if(operation = 'set_once', ${changeId}, change_id),
    if(operation = 'set_once', 'set', operation),
    value
  )::Tuple(
    version UInt64, change_id UUID, operation Enum8('set' = 1, 'remove' = 2), value String
  ))
FROM staged_changes
WHERE operation IN ('set', 'set_once', 'remove')
GROUP BY workspace_id, kind, id, property`;
}

export const STORE_PROPERTIES = {
  'store-properties': { name: 'store-properties', sql: storeProperties(NEVER_DELETED) },
  'store-properties-since-deletions': {
    name: 'store-properties-since-deletions',
    sql: storeProperties(SINCE_DELETIONS),
  },
} as const satisfies Readonly<Record<string, Statement>>;

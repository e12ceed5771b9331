import { fastColumn, fastSet, fastValues, usedColumns } from '@sluice/shared/clickhouse/fast-properties';
import { ONCE_WEEKS_OF_CHANGE, VERSION_OF_CHANGE } from '@sluice/shared/clickhouse/property-versions';
import { deletedVersionOf, lastDeletionsOf, type Users } from '@sluice/storage/clickhouse/deleted-versions';
import type { Statement } from '@sluice/storage/clickhouse/statements';
import { STORED_EVENT_COLUMNS } from './staging-tables.ts';

/** The users of the staged events. An event without a user has its visitor (`deleted-person.ts` in packages/shared). */
const USERS_OF_EVENTS: Users = { column: 'person', from: 'staged_events' };
const USERS_OF_CHANGES: Users = { column: 'id', from: "staged_changes WHERE kind = 'user'" };

// Users, organizations, and which of them belong together: 0013-memberships.sql explains the kinds.
//
// In the row of a user, `other_id` is the deletion after which the row begins: the version of the last one that the writer
// knows, or empty. So what was seen before a deletion and after it is never merged into one row. Deletions are looked up
// only for batches with users who were ever deleted, and here rather than before: this insert must know every deletion
// that may be erased before it ends. A row that was stored before its writer knew the deletion may hold times from before
// and after; the erasure replaces it (store-returned-users).

/** SQL for the deletion after which the row of a user begins, in a batch whose users were never deleted. */
const NO_DELETION = "'' AS deletion";

const DELETION_OF_EVENT = deletionBefore(
  'toUnixTimestamp64Micro(received_at)',
  lastDeletionsOf(USERS_OF_EVENTS),
  deletedVersionOf(USERS_OF_EVENTS),
);
const DELETION_OF_CHANGE = deletionBefore(
  "if(kind = 'user', staged_changes.version, 0)",
  lastDeletionsOf(USERS_OF_CHANGES),
  deletedVersionOf(USERS_OF_CHANGES),
);

function deletionBefore(version: string, deletions: string, deletedVersion: string): string {
  return `${deletions} AS deletions,
  ${deletedVersion} AS deleted_version,
  if(deleted_version > 0 AND ${version} > deleted_version, toString(deleted_version), '') AS deletion`;
}

/**
 * Repeats were dropped from the staged events, so a user or an organization that only a repeat names is not stored. Runs
 * before store-events: after a crash between the two, both run again, and no stored event lacks its user.
 */
function seenInEvents(deletion: string): string {
  return `
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
SELECT
  workspace_id,
  entity.1 AS kind,
  entity.2 AS id,
  entity.3 AS other_id,
  min(first_seen_at),
  max(last_seen_at),
  max(version)
FROM (
  WITH
  ${deletion}
  SELECT
    workspace_id,
    min(timestamp) AS first_seen_at,
    max(timestamp) AS last_seen_at,
    max(toUnixTimestamp64Micro(received_at)) AS version,
    arrayJoin(multiIf(
      user_id = '', [('organization', group_id, '')],
      group_id = '', [('user', user_id, deletion)],
      [
        ('user', user_id, deletion), ('organization', group_id, ''),
        ('membership', user_id, group_id), ('member', group_id, user_id)
      ]
    )) AS entity
  FROM staged_events
  WHERE user_id != '' OR group_id != ''
  GROUP BY workspace_id, user_id, group_id, deletion
)
GROUP BY workspace_id, kind, id, other_id`;
}

/** The row of a user names the organization of its submission. */
function seenInChanges(deletion: string): string {
  return `
INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version)
WITH
  ${deletion}
SELECT
  workspace_id,
  entity.1 AS entity_kind,
  entity.2 AS entity_id,
  entity.3 AS other_id,
  fromUnixTimestamp64Milli(toInt64(intDiv(min(version), 1000)), 'UTC'),
  fromUnixTimestamp64Milli(toInt64(intDiv(max(version), 1000)), 'UTC'),
  max(staged_changes.version)
FROM staged_changes
ARRAY JOIN if(
  kind = 'user' AND group_id != '',
  [('user', id, deletion), ('membership', id, group_id), ('member', group_id, id)],
  [(toString(kind), id, deletion)]
) AS entity
WHERE operation = 'seen'
GROUP BY workspace_id, entity_kind, entity_id, other_id`;
}

const STORE_SEEN = {
  'store-seen-in-events': { name: 'store-seen-in-events', sql: seenInEvents(NO_DELETION) },
  'store-seen-in-events-since-deletions': {
    name: 'store-seen-in-events-since-deletions',
    sql: seenInEvents(DELETION_OF_EVENT),
  },
  'store-seen-in-changes': { name: 'store-seen-in-changes', sql: seenInChanges(NO_DELETION) },
  'store-seen-in-changes-since-deletions': {
    name: 'store-seen-in-changes-since-deletions',
    sql: seenInChanges(DELETION_OF_CHANGE),
  },
} as const satisfies Readonly<Record<string, Statement>>;

/**
 * What is stored follows from the changes alone, not from the deletions that are known by then: one that is stored later, with
 * a time before some of them, has to leave the same as one that was stored first.
 */
const STORE_PROPERTIES: Statement = {
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

/** What a workspace declares as fast: its name, the set, which is a number of 64 bits, and the names of properties by column. */
export type FastList = readonly [workspace: string, set: string, names: readonly string[]];

/** How long the lists of a batch may be together, in characters of an address. Events of workspaces behind that are filled later. */
const LISTS_CHARACTERS_MAX = 64 * 1_024;

function boundedLists(lists: readonly FastList[]): readonly FastList[] {
  let characters = 0;
  return lists.filter((list) => {
    characters += encodeURIComponent(JSON.stringify(list)).length;
    return characters <= LISTS_CHARACTERS_MAX;
  });
}

/** The place of an event's workspace among those with lists; 0 where it has none: then the elements there are 0 and empty. */
const PLACE_OF_LIST = `transform(
    workspace_id, {fast_workspaces:Array(String)}, arrayEnumerate({fast_workspaces:Array(String)}), toUInt32(0)
  ) AS place`;

const LIST_OF_EVENT = 'arrayMap(one -> toUInt64(one), {fast_sets:Array(String)})[place]';

/**
 * Returns the statement that stores the staged events with the values of fast properties, and what it binds of these. Both the set and the values of
 * an event follow from the same list, whatever is declared meanwhile.
 */
export function storeFastEvents(all: readonly FastList[]): {
  statement: Statement;
  parameters: Record<string, unknown>;
} {
  const lists = boundedLists(all);
  const columns = usedColumns(lists.map(([, , names]) => names));
  return {
    statement: storeEvents(columns),
    parameters: {
      ...(columns.length > 0 && {
        fast_workspaces: lists.map(([workspace]) => workspace),
        fast_sets: lists.map(([, set]) => set),
      }),
      ...Object.fromEntries(
        columns.map((column) => [`fast_names_${column}`, lists.map(([, , names]) => names[column - 1] ?? '')]),
      ),
    },
  };
}

/**
 * Stores the staged events, without those that were accepted before their user was deleted. find-repeats and drop-repeats
 * have left those that are not stored yet, so a batch may be repeated whatever became of the last attempt.
 * Fails when a newer epoch is recorded, because its writers own the partitions now. They end an insert that began before
 * they recorded their epoch. So nobody else stores these rows between the look-up and the end of this insert.
 *
 * @param columns those that workspaces of the events have fast properties in
 */
function storeEvents(columns: readonly number[]): Statement {
  const values = columns.map((column, index) => [fastColumn(column), `fast_values[${index + 1}]`] as const);
  const set = ['fast_set', fastSet('list', 'properties', 'fast_values', columns)] as const;
  const fast = columns.length === 0 ? [] : [set, ...values];
  return {
    name: 'store-events',
    sql: `
INSERT INTO events (${[STORED_EVENT_COLUMNS, ...fast.map(([column]) => column)].join(', ')})
WITH
  -- Read here and not before: this insert must know every deletion that may be erased before the insert ends.
  ${lastDeletionsOf(USERS_OF_EVENTS)} AS deletions
SELECT ${[STORED_EVENT_COLUMNS, ...fast.map(([, value]) => value)].join(',\n  ')}
FROM ${columns.length === 0 ? 'staged_events' : withValues(columns)}
WHERE throwIf(
    (SELECT max((incarnation, generation)) FROM writer_epochs WHERE group_id = {group:String})
      > ({incarnation:UInt32}, {generation:UInt32}),
    'a newer epoch owns the partitions'
  ) = 0
  AND toUnixTimestamp64Micro(received_at) > ${deletedVersionOf(USERS_OF_EVENTS)}`,
  };
}

/** The staged events with the list of each, and its values. ClickHouse analyzes an expression wherever it stands: here it stands once. */
function withValues(columns: readonly number[]): string {
  const names = columns.map((column) => `{fast_names_${column}:Array(String)}[place]`);
  return `(
  WITH ${PLACE_OF_LIST}
  SELECT *, person, ${LIST_OF_EVENT} AS list, ${fastValues('properties', names)} AS fast_values
  FROM staged_events
)`;
}

/** The statements that move staged rows into the tables, as far as they are generated; that of events is for a batch without fast properties. */
export const STORE_STATEMENTS = {
  'store-properties': STORE_PROPERTIES,
  ...STORE_SEEN,
  'store-events': storeEvents([]),
} as const;

import { ANONYMOUS_ID_SQL, IS_VISITOR_SQL, PERSON_SQL } from '@sluice/shared/rows/deleted-person';
import type { Sql } from '../sql.ts';
import { queryStringOf, VALUE_CHARACTERS_MAX } from '../statement-request.ts';
import type { Deletion, Tables } from '../tables.ts';

// A deleted user or visitor is hidden from the moment the deletion is stored, although their rows are erased later:
//
// - Events: each query leaves out those that were accepted before the deletion of their user or visitor, by the condition below.
//   PendingDeletions says for which workspaces that is needed at all.
// - Users and organizations: who reads them compares versions with the last deletion of the user (last-deletions.ts).
//   Of users who came back, only what was submitted since then counts (returned-users.ts).

/**
 * Returns the condition that the events of deleted users and visitors meet until they are erased: they were accepted before the
 * deletion. The identifiers come first, for their indexes; the rest is a look-up per event, so that a page reads only its own
 * events, however many deletions are pending.
 */
export function hiddenEvents(tables: Tables): Sql {
  return hiddenByPersons(tables, tables.pendingDeletions);
}

/** The same where visitors belong to users: those of a deleted user are hidden with it, before they have a deletion of their own. */
export function hiddenEventsOfPersons(tables: Tables): Sql {
  const { pendingDeletions, deletedVisitors } = tables;
  const all = [pendingDeletions, deletedVisitors].map((persons) => `SELECT user_id, version FROM ${persons}`);
  return hiddenByPersons(tables, `(\n  ${all.join('\n  UNION ALL\n  ')}\n)`);
}

/** @param persons SQL of their `user_id` and `version` */
function hiddenByPersons(tables: Tables, persons: string): Sql {
  const visitors = `SELECT ${ANONYMOUS_ID_SQL} FROM ${persons} WHERE ${IS_VISITOR_SQL}`;
  return {
    sql: `(user_id GLOBAL IN (${deletedSql(persons)}) OR user_id = '' AND anonymous_id GLOBAL IN (${visitors}))
  AND ${deletedBefore(persons, PERSON_SQL, 'toUnixTimestamp64Micro(received_at)')}`,
    params: tables.params,
  };
}

/** The same for dead letters, which name the user or the visitor as a deletion does, and have the version of their row. */
export function hiddenDeadLetters(tables: Tables): Sql {
  return {
    sql: `user_id GLOBAL IN (${deletedSql(tables.pendingDeletions)})
  AND ${deletedBefore(tables.pendingDeletions, 'user_id', 'version')}`,
    params: tables.params,
  };
}

function deletedSql(persons: string): string {
  return `SELECT user_id FROM ${persons} GROUP BY user_id`;
}

function deletedBefore(persons: string, person: string, version: string): string {
  const pending = `
SELECT user_id, max(version) AS deleted_version
FROM ${persons}
GROUP BY user_id`;
  // ClickHouse evaluates equal scalars once.
  const arrays = `(SELECT (groupArray(user_id), groupArray(toInt64(deleted_version))) FROM (${pending}))`;
  return `${version} <= transform(${person}, ${arrays}.1, ${arrays}.2, toInt64(-1))`;
}

/**
 * Returns the condition that an event is not hidden, as a list to be spread.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function shownConditions(hidden: Sql | undefined): readonly Sql[] {
  return hidden ? [{ ...hidden, sql: `NOT (${hidden.sql})` }] : [];
}

/** What a deletion takes at least, in characters: its version. */
const DELETION_CHARACTERS_MIN = 16;

/** Whether ClickHouse takes deletions as parameters of a statement. */
export function canBeNamed(deletions: readonly Deletion[]): boolean {
  if (deletions.length > VALUE_CHARACTERS_MAX / DELETION_CHARACTERS_MIN) return false;
  const params = { users: deletions.map(({ user }) => user), versions: deletions.map(({ version }) => version) };
  const values = Object.entries(params).map(([name, value]) => queryStringOf({}, { [name]: value }));
  return values.every(({ length }) => length <= VALUE_CHARACTERS_MAX);
}

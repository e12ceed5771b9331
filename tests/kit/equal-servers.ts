import { deepStrictEqual } from 'node:assert/strict';
import { acceptedSql } from '@sluice/shared/clickhouse/property-versions';
import { IS_MERGE_SQL, MERGED_USER_SQL } from '@sluice/shared/rows/merged-user';
import { readClickHouse } from './clickhouse.ts';
import { expectedEvents } from './expected-events.ts';
import type { Tally } from './load.ts';

/** A database that is compared with others. */
export interface ComparedDatabase {
  readonly url: string;
  readonly database: string;
}

/** The last deletion of each user. A SELECT from it finds the version, 0 for a user who was never deleted. */
const DELETIONS = '(SELECT workspace_id, user_id, max(version) AS deleted FROM user_deletions GROUP BY ALL)';

const ofUser = (user: string) => `LEFT JOIN ${DELETIONS} AS deletions
  ON deletions.workspace_id = t.workspace_id AND deletions.user_id = ${user}`;

/**
 * What is equal on all servers: what they show, whatever is merged or erased by now. After which deletion a row of a user begins
 * depends on what its writer knew, and when users who came back were seen is computed, so both are left out. Rows of events begin with the key of the event, those of users with the user.
 */
const TABLES: Readonly<Record<string, string>> = {
  events: `SELECT JSONExtractString(properties, 'key'), t.workspace_id, timestamp, uuid, type, event, t.user_id, group_id, anonymous_id, instance_id,
      properties, context, traits, received_at
    FROM events AS t ${ofUser('t.user_id')}
    WHERE toUnixTimestamp64Micro(received_at) > deleted`,
  users: `SELECT t.user, t.workspace_id, kind, id, other, newest,
      if(deleted = 0, (first, last), NULL) AS times
    FROM (
      SELECT workspace_id, kind, id, if(kind = 'user', '', other_id) AS other, max(version) AS newest,
        min(first_seen_at) AS first, max(last_seen_at) AS last, if(kind = 'member', other_id, id) AS user
      FROM entities WHERE kind != 'organization' GROUP BY ALL
    ) AS t ${ofUser('t.user')}
    WHERE newest > deleted`,
  organizations: "SELECT DISTINCT workspace_id, id FROM entities WHERE kind = 'organization'",
  // What was set once first does not count for users who were deleted.
  properties: `SELECT t.workspace_id, kind, id, property, once_week, register
    FROM (
      SELECT workspace_id, kind, id, property, once_week, max(register) AS register
      FROM entity_properties GROUP BY ALL
    ) AS t ${ofUser("if(kind = 'user', t.id, '')")}
    WHERE ${acceptedSql('register.version', 'once_week')} > deleted AND (once_week != 1 OR deleted = 0)`,
  sightings: `SELECT DISTINCT t.workspace_id, t.user_id, version, group_id
    FROM user_sightings AS t ${ofUser('t.user_id')} WHERE version > deleted`,
  links: `SELECT DISTINCT t.workspace_id, anonymous_id, t.user_id, version, said
    FROM identity_links AS t ${ofUser('t.user_id')}
    WHERE version > deleted AND (t.workspace_id, if(${IS_MERGE_SQL}, ${MERGED_USER_SQL}, '')) NOT IN (
      SELECT workspace_id, user_id FROM user_deletions
    )`,
  deletions: 'SELECT workspace_id, user_id, max(version) FROM user_deletions GROUP BY ALL',
  deadLetters: 'SELECT DISTINCT id, row FROM dead_letters',
};

/** What is equal on several servers, and what is not. */
export interface ServerComparison {
  /** How many rows of each table all of them have. */
  readonly equal: Readonly<Record<string, number>>;
  /** Rows that not all of them have equally often, with their table and how often each server has them. */
  readonly different: readonly string[];
}

/**
 * Compares what databases show that are fed from one log, once their writers have stored everything. Left out are events that
 * were sent again for another user around the deletion of the first one, and what they alone name
 * (docs/design/decisions/0057-servers-from-one-log.md).
 */
export async function compareServers(databases: readonly ComparedDatabase[], tally: Tally): Promise<ServerComparison> {
  const several = [...expectedEvents(tally, new Set())].filter(([, { users }]) => users.size > 1);
  const uncertain: ReadonlySet<string> = new Set(several.flatMap(([key, event]) => [key, ...event.users]));
  const equal: Record<string, number> = {};
  const different: string[] = [];
  for (const [table, query] of Object.entries(TABLES)) {
    const found = await Promise.all(databases.map((one) => rowsOf(one, query)));
    const counts = found.map((rows) => countEach(rows.filter((row) => !uncertain.has(firstColumn(row)))));
    let inAll = 0;
    for (const row of new Set(counts.flatMap((of) => [...of.keys()]))) {
      const times = counts.map((of) => of.get(row) ?? 0);
      const fewest = Math.min(...times);
      inAll += fewest;
      if (fewest < Math.max(...times)) different.push(`${table}: ${times.join(' and ')} times ${row}`);
    }
    equal[table] = inAll;
  }
  return { equal, different };
}

/**
 * Checks that {@link compareServers} finds no difference.
 *
 * @throws {AssertionError} with the rows that differ
 */
export async function expectEqualServers(databases: readonly ComparedDatabase[], tally: Tally): Promise<void> {
  const { equal, different } = await compareServers(databases, tally);
  deepStrictEqual(different, []);
  for (const [table, rows] of Object.entries(equal)) {
    if (rows === 0 && table !== 'deadLetters') throw new Error(`there are no ${table} to compare`);
  }
}

function countEach(rows: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(row, (counts.get(row) ?? 0) + 1);
  return counts;
}

async function rowsOf({ url, database }: ComparedDatabase, query: string): Promise<string[]> {
  const text = await readClickHouse(url, `${query} FORMAT JSONCompactEachRow`, { database });
  return text.split('\n').filter(Boolean);
}

function firstColumn(row: string): string {
  return String((JSON.parse(row) as unknown[])[0]);
}

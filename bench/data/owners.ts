import { type BenchDatabase, PLAIN_SETTINGS } from '../processes/database.ts';
import { WORKSPACE } from './filter-queries.ts';
import { fillEvents } from './rows.ts';
import { addedEntities } from './users.ts';

/** Over how many days the events are spread. */
export const OWNED_DAYS = 90;

/** There are so many events of an organization, and of a user, on the average. */
const EVENTS_PER_ORGANIZATION = 100;
const EVENTS_PER_USER = 1.5;

/** The ten organizations of one in each three thousand have these names. */
const MANAGERS = 3_000;

/** Filters by owners: the property and a value that many have, and one that few have. */
export const OWNED = {
  organization: { common: 'organization.properties.plan', rare: 'organization.properties.manager' },
  user: { common: 'user.properties.country', rare: 'user.properties.email' },
} as const;

/** A segment: users who did not search within the last 30 days, and who did. */
export const SEGMENTS = {
  searched: { of: 'users', behaviour: [{ did: 'search', times: 1, days: 30 }] },
  'never-searched': { of: 'users', behaviour: [{ did: 'search', times: 0, days: 30 }] },
  'organizations-that-searched': { of: 'organizations', behaviour: [{ did: 'search', times: 1, days: 30 }] },
} as const;

/**
 * Stores events of users and organizations of one workspace, what is known of these, and segments of users. Half of the users have a
 * country, one of five; each has an email. An organization has a plan, one of four, and a manager, whom ten have.
 */
export async function fillOwned(database: BenchDatabase, events: number): Promise<void> {
  const organizations = Math.ceil(events / EVENTS_PER_ORGANIZATION);
  const users = Math.ceil(events / EVENTS_PER_USER);
  await fillEvents(database, events, OWNED_DAYS, { users, organizations, workspaces: [WORKSPACE] });
  for (const [count, statements] of [
    [users, addedEntities('user', SAID_OF_USERS)],
    [organizations, addedEntities('organization', SAID_OF_ORGANIZATIONS)],
  ] as const) {
    const query_params = { workspace: WORKSPACE, count, managers: MANAGERS };
    for (const query of statements) {
      await database.client.command({ query, query_params, clickhouse_settings: PLAIN_SETTINGS });
    }
  }
  for (const table of ['entities', 'entity_properties']) {
    await database.client.command({ query: `OPTIMIZE TABLE ${table} FINAL` });
  }
  await database.client.insert({
    table: 'console_documents',
    values: Object.entries(SEGMENTS).map(([name, segment], index) => ({
      ...{ kind: 'segment', workspace_id: WORKSPACE, id: `00000000-0000-4000-8000-00000000000${index}` },
      ...{ content: JSON.stringify({ name, filters: {}, ...segment }), created_at: Date.now(), is_deleted: false },
    })),
    format: 'JSONEachRow',
  });
}

const SAID_OF_USERS = `arrayFilter(said -> said.2 != '', [
  ('country', ['"AT"', '"CH"', '"DE"', '"FR"', '"IT"', '', '', '', '', ''][sipHash64(number) % 10 + 1]),
  ('email', concat('"', toString(number), '@example.com"'))
])`;

const SAID_OF_ORGANIZATIONS = `[
  ('plan', ['"free"', '"team"', '"business"', '"enterprise"'][sipHash64(number) % 4 + 1]),
  ('manager', concat('"manager-', toString(number % {managers:UInt32}), '"'))
]`;

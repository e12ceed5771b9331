import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { WORKSPACE } from './filter-queries.ts';

const USERS = 2_000_000;

/** The beginning of identifiers, which have a number behind it. */
const BEGINNINGS = { user: 'user-', organization: 'org-' } as const;

/**
 * Returns the statements that add so many users or organizations as `{count:UInt32}` says to `{workspace:String}`, with properties.
 *
 * @param said SQL of a list of names and JSON values of properties, by the `number` of each
 */
export function addedEntities(kind: keyof typeof BEGINNINGS, said: string): readonly string[] {
  const whose = `{workspace:String}, '${kind}', concat('${BEGINNINGS[kind]}', toString(number))`;
  return [
    `INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
    SELECT ${whose}, now64(3), now64(3), 1700000000000000 + number
    FROM numbers({count:UInt32})`,
    `INSERT INTO entity_properties (workspace_id, kind, id, property, register)
    SELECT ${whose}, said.1, (1700000000000000 + number, generateUUIDv4(number), 'set', said.2)
    FROM numbers({count:UInt32})
    ARRAY JOIN ${said} AS said`,
  ];
}

const SAID = `[
  ('plan', ['"free"', '"team"', '"business"', '"enterprise"'][number % 4 + 1]),
  ('team', concat('"team-', toString(number % 20000), '"')),
  ('email', concat('"', toString(number), '@example.com"'))
]`;

/** Adds two million users, with a property that a quarter of them have, one that 100 have, and one that only one has. */
export async function addUsers(client: ClickHouseClient): Promise<void> {
  const query_params = { workspace: WORKSPACE, count: USERS };
  for (const query of addedEntities('user', SAID)) await client.command({ query, query_params });
}

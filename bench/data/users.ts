import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { WORKSPACE } from './filter-queries.ts';

const USERS = 2_000_000;

const ENTITIES = `
  INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
  SELECT {workspace:String}, 'user', concat('user-', toString(number)), now64(3), now64(3), 1700000000000000 + number
  FROM numbers({users:UInt32})`;

const PROPERTIES = `
  INSERT INTO entity_properties (workspace_id, kind, id, property, register)
  SELECT
    {workspace:String}, 'user', concat('user-', toString(number)), said.1,
    (1700000000000000 + number, generateUUIDv4(number), 'set', said.2)
  FROM numbers({users:UInt32})
  ARRAY JOIN [
    ('plan', ['"free"', '"team"', '"business"', '"enterprise"'][number % 4 + 1]),
    ('team', concat('"team-', toString(number % 20000), '"')),
    ('email', concat('"', toString(number), '@example.com"'))
  ] AS said`;

/** Adds two million users, with a property that a quarter of them have, one that 100 have, and one that only one has. */
export async function addUsers(client: ClickHouseClient): Promise<void> {
  const query_params = { workspace: WORKSPACE, users: USERS };
  for (const query of [ENTITIES, PROPERTIES]) await client.command({ query, query_params });
}

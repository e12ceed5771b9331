import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { BenchDatabase, BenchEngine } from './engine.ts';
import { WORKSPACE } from './filter-queries.ts';
import { storeTraffic } from './query.ts';
import { randomBatch } from './rows.ts';
import { createTraffic } from './traffic.ts';

const MONTH_DAYS = 30;
const MONTHS = 36;
const SMALL_EVENTS = 1_000_000;

/** A batch of scattered history leaves a part in every month. */
const SCATTERED_ROWS = 5_000;

const DELETIONS = 1_000_000;
const USERS = 2_000_000;

/**
 * Fills three databases: `small` with a million events of a month, `deleted` with the same and a million past deletions,
 * and `large` with events of 36 months and two million users. Afterwards nothing is merged.
 *
 * @returns the large database, and how many events it should hold
 */
export async function fillDatabases(
  engine: BenchEngine,
  events: number,
): Promise<{ readonly large: BenchDatabase; readonly expected: number }> {
  await filled(engine, 'small', SMALL_EVENTS, MONTH_DAYS);
  const deleted = await filled(engine, 'deleted', SMALL_EVENTS, MONTH_DAYS);
  await addDeletions(deleted.client);
  const large = await filled(engine, 'large', events, MONTHS * MONTH_DAYS);
  await addUsers(large.client);
  await engine.settleMerges();
  await engine.stopMerges();
  await scatter(large);
  return { large, expected: events + SCATTERED_ROWS };
}

async function filled(engine: BenchEngine, name: string, events: number, days: number): Promise<BenchDatabase> {
  const database = await engine.database(name);
  await storeTraffic(database, createTraffic(events, Date.now() - 60_000, days), events);
  return database;
}

/** Stores a little of every month, as an import in no order does. */
async function scatter(database: BenchDatabase): Promise<void> {
  const now = Date.now();
  const spanMs = MONTHS * MONTH_DAYS * 86_400_000;
  await database.store(randomBatch(SCATTERED_ROWS, () => now - Math.floor(Math.random() * spanMs)));
}

async function addDeletions(client: ClickHouseClient): Promise<void> {
  const query = `
    INSERT INTO user_deletions (workspace_id, user_id, version)
    SELECT {workspace:String}, concat('gone-', toString(number)), toUInt64(1700000000000000 + number)
    FROM numbers({deletions:UInt32})`;
  await client.command({ query, query_params: { workspace: WORKSPACE, deletions: DELETIONS } });
}

/** Users with a property that a quarter of them have, one that 100 have, and one that only one has. */
async function addUsers(client: ClickHouseClient): Promise<void> {
  const query_params = { workspace: WORKSPACE, users: USERS };
  const entities = `
    INSERT INTO entities (workspace_id, kind, id, first_seen_at, last_seen_at, version)
    SELECT {workspace:String}, 'user', concat('user-', toString(number)), now64(3), now64(3), 1700000000000000 + number
    FROM numbers({users:UInt32})`;
  const properties = `
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
  for (const query of [entities, properties]) await client.command({ query, query_params });
}

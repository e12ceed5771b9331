import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { BenchDatabase, BenchEngine } from './engine.ts';
import { readRows, WORKSPACE } from './filter-queries.ts';
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

/** The databases of the benchmark. In all of them nothing is merged any more. */
export interface ScaleDatabases {
  /** A million events of a month. */
  readonly small: BenchDatabase;
  /** The very parts of `small`, and a million past deletions. */
  readonly deleted: BenchDatabase;
  /** Events of 36 months, and two million users. */
  readonly large: BenchDatabase;
  /** How many events `large` should hold. */
  readonly expected: number;
}

export async function fillDatabases(engine: BenchEngine, events: number): Promise<ScaleDatabases> {
  const small = await filled(engine, 'small', SMALL_EVENTS, MONTH_DAYS);
  const large = await filled(engine, 'large', events, MONTHS * MONTH_DAYS);
  await addUsers(large.client);
  await engine.settleMerges();
  await engine.stopMerges();
  await scatter(large);
  const deleted = await engine.database('deleted');
  await copyParts(small, deleted);
  await addDeletions(deleted.client);
  return { small, deleted, large, expected: events + SCATTERED_ROWS };
}

/** Merges each month into one part, as ClickHouse does with months that get no events any more. */
export async function mergeMonths(client: ClickHouseClient): Promise<void> {
  for (const id of await partitionsOf(client)) {
    await client.command({ query: 'OPTIMIZE TABLE events PARTITION ID {id:String} FINAL', query_params: { id } });
  }
}

async function copyParts(from: BenchDatabase, to: BenchDatabase): Promise<void> {
  for (const id of await partitionsOf(from.client)) {
    await to.client.command({
      query: 'ALTER TABLE events ATTACH PARTITION ID {id:String} FROM small.events',
      query_params: { id },
    });
  }
}

async function partitionsOf(client: ClickHouseClient): Promise<string[]> {
  const query = `SELECT DISTINCT partition_id AS id FROM system.parts
    WHERE database = currentDatabase() AND table = 'events' AND active`;
  const partitions = await readRows<{ id: string }>(client, query);
  return partitions.map(({ id }) => id);
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
export async function addUsers(client: ClickHouseClient): Promise<void> {
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

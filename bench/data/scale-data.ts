import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { BenchDatabase } from '../processes/database.ts';
import type { BenchEngine } from '../processes/engine.ts';
import { WORKSPACE } from './filter-queries.ts';
import { randomBatch } from './rows.ts';
import { storeTraffic } from './store-traffic.ts';
import { createTraffic, DAY_MS, LONG_DAYS } from './traffic.ts';
import { addUsers } from './users.ts';

const SMALL_DAYS = 30;
const SMALL_EVENTS = 1_000_000;

/** A batch of scattered history leaves a part in every month. */
const SCATTERED_ROWS = 5_000;

const DELETIONS = 1_000_000;

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
  const small = await filled(engine, 'small', SMALL_EVENTS, SMALL_DAYS);
  const large = await filled(engine, 'large', events, LONG_DAYS);
  await addUsers(large.client);
  await engine.settleMerges();
  await engine.stopMerges();
  await scatter(large);
  const deleted = await engine.createDatabase('deleted');
  await copyParts(small, deleted);
  await addDeletions(deleted.client);
  return { small, deleted, large, expected: events + SCATTERED_ROWS };
}

async function copyParts(small: BenchDatabase, to: BenchDatabase): Promise<void> {
  for (const id of await small.partitions()) {
    const query = 'ALTER TABLE events ATTACH PARTITION ID {id:String} FROM small.events';
    await to.client.command({ query, query_params: { id } });
  }
}

async function filled(engine: BenchEngine, name: string, events: number, days: number): Promise<BenchDatabase> {
  const database = await engine.createDatabase(name);
  await storeTraffic(database, createTraffic(events, Date.now() - 60_000, days), events);
  return database;
}

/** Stores a little of every month, as an import in no order does. */
async function scatter(database: BenchDatabase): Promise<void> {
  const now = Date.now();
  await database.store(randomBatch(SCATTERED_ROWS, () => now - Math.floor(Math.random() * LONG_DAYS * DAY_MS)));
}

async function addDeletions(client: ClickHouseClient): Promise<void> {
  const query = `
    INSERT INTO user_deletions (workspace_id, user_id, version)
    SELECT {workspace:String}, concat('gone-', toString(number)), toUInt64(1700000000000000 + number)
    FROM numbers({deletions:UInt32})`;
  await client.command({ query, query_params: { workspace: WORKSPACE, deletions: DELETIONS } });
}

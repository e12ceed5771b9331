import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ClickHouseConfig } from '../../config/config.ts';
import { createClickHouse } from '../client.ts';
import { readMigrations } from '../migrate.ts';
import { createdTable } from '../migration-waves.ts';
import { ADMINISTRATOR } from './test-accounts.ts';

/** The tables after all migrations, as a test of `npm test` compares them. */
const SCHEMA = new URL('../../../../../docs/design/schema.sql', import.meta.url);

/** A database with the newest schema and without rows. */
export interface TestDatabase {
  /** For the administrator. */
  readonly config: ClickHouseConfig;
  release(): Promise<void>;
}

/** The databases of this process that are not released. */
const taken = new Set<string>();

/**
 * Takes the database of this vitest worker and empties it; another one for each that is not released yet. Emptying one
 * takes ClickHouse a fifth of the CPU time of creating one.
 */
export async function takeDatabase(url: string): Promise<TestDatabase> {
  // One worker of a run runs one file at a time.
  const names = `test_worker_${process.env['VITEST_POOL_ID']}_`;
  let index = 0;
  while (taken.has(`${names}${index}`)) index += 1;
  const name = `${names}${index}`;
  taken.add(name);
  const config = configOf(url, name);
  await createNewest(config);
  await empty(config);
  return {
    config,
    release: async () => {
      taken.delete(name);
    },
  };
}

/** Creates a database that is dropped when it is released, for tests that change tables, or look at ClickHouse's own. */
export async function createDatabase(
  url: string,
  name = `test_${randomUUID().replaceAll('-', '')}`,
): Promise<TestDatabase> {
  const config = configOf(url, name);
  await createNewest(config);
  return {
    config,
    async release() {
      await using client = clientOf({ ...config, CLICKHOUSE_DATABASE: 'default' });
      // Otherwise its tables would cost the engine of all tests CPU time to the end.
      await client.command({ query: `DROP DATABASE ${name} SYNC` });
    },
  };
}

/**
 * Creates a database with the newest schema, unless there is one of its name. Its tables are created as they are after all
 * migrations, which would take ClickHouse several times the CPU time.
 *
 * @param config of an account that may create tables
 */
export async function createNewest(config: ClickHouseConfig): Promise<void> {
  const database = config.CLICKHOUSE_DATABASE;
  await using server = clientOf({ ...config, CLICKHOUSE_DATABASE: 'default' });
  const query = 'SELECT count() FROM system.databases WHERE name = {database:String}';
  const found = await server.query({ query, query_params: { database }, format: 'JSONCompactEachRow' });
  if ((await found.json<[number]>())[0]?.[0] !== 0) return;
  const [text, migrations] = await Promise.all([readFile(SCHEMA, 'utf8'), readMigrations()]);
  // It has its name once it is whole: a process that is killed meanwhile leaves no half of it to the next one.
  const unfinished = `${database}_unfinished`;
  await server.command({ query: `DROP DATABASE IF EXISTS ${unfinished} SYNC` });
  await server.command({ query: `CREATE DATABASE ${unfinished}` });
  await using client = clientOf({ ...config, CLICKHOUSE_DATABASE: unfinished });
  const statements = text.split(';\n').filter((statement) => statement.includes('CREATE TABLE'));
  await client.command({ query: statements.join('\nPARALLEL WITH\n') });
  const values = migrations.map(({ number, name, checksum }) => ({ number, name, checksum }));
  await client.insert({ table: 'schema_migrations', values, format: 'JSONEachRow' });
  await server.command({ query: `RENAME DATABASE ${unfinished} TO ${database}` });
}

function configOf(url: string, name: string): ClickHouseConfig {
  return { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: name, ...ADMINISTRATOR };
}

/** Empties the tables of migrations, and drops all others. */
async function empty(config: ClickHouseConfig): Promise<void> {
  const migrated = new Set((await readMigrations()).map(createdTable));
  await using client = clientOf(config);
  const tables = await client.query({
    query: "SELECT name FROM system.tables WHERE database = currentDatabase() AND name != 'schema_migrations'",
    format: 'JSONEachRow',
  });
  const statements = (await tables.json<{ name: string }>()).map(({ name }) =>
    migrated.has(name) ? `TRUNCATE TABLE ${name}` : `DROP TABLE ${name} SYNC`,
  );
  await client.command({ query: statements.join(' PARALLEL WITH ') });
}

function clientOf(config: ClickHouseConfig) {
  return createClickHouse(config, { application: 'test-database', requestTimeoutMs: 60_000, connectionsMax: 1 });
}

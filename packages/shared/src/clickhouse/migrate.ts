import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { ClickHouseConfig } from '../config.ts';
import type { Logger } from '../log.ts';
import { type ClickHouseClient, createClickHouse } from './client.ts';

const MIGRATIONS = new URL('./migrations/', import.meta.url);
const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/;

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the file, in hex. */
  readonly checksum: string;
}

/** A migration was changed after it had been applied to the database. */
export class MigrationMismatch extends Error {
  override readonly name = 'MigrationMismatch';
}

/** The database has lost tables and has kept others. */
export class TablesLost extends Error {
  override readonly name = 'TablesLost';
}

/** Reads the numbered `.sql` files, in order. Each holds one statement that may be run again (`IF NOT EXISTS`). */
export async function readMigrations(folder: URL = MIGRATIONS): Promise<readonly Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort();
  return await Promise.all(
    files.map(async (file, index) => {
      const number = Number(FILE_NAME.exec(file)?.[1]);
      if (number !== index + 1) throw new Error(`migration ${file} should be number ${index + 1}, named NNNN-name.sql`);
      const sql = await readFile(new URL(file, folder), 'utf8');
      return { number, name: file, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}

/**
 * Brings the database to the newest schema: creates it if it is missing, and applies the migrations that are missing, in
 * order.
 *
 * Several services may call it at the same time. ClickHouse has no locks, so each migration is one statement that can be
 * repeated, and the records of it merge into one.
 *
 * A database that is newer than these files stays as it is: migrations only add, so that a service can be rolled back.
 *
 * @returns the numbers of the migrations that this call applied
 * @throws {MigrationMismatch} when an applied migration's checksum differs
 * @throws {TablesLost} when a part of the tables is gone: new ones would be empty beside those that remain
 */
export async function migrate(
  config: ClickHouseConfig,
  logger: Logger,
  migrations?: readonly Migration[],
): Promise<number[]> {
  const wanted = migrations ?? (await readMigrations());
  await createDatabase(config);
  const client = createClickHouse(config, {
    application: 'sluice-migrate',
    requestTimeoutMs: 60_000,
    connectionsMax: 1,
  });
  try {
    await client.command({
      query: `CREATE TABLE IF NOT EXISTS schema_migrations
        (number UInt32, name String, checksum String, applied_at DateTime DEFAULT now())
        ENGINE = ReplacingMergeTree ORDER BY number`,
    });
    const applied = await appliedChecksums(client);
    rejectChanged(wanted, applied);
    // After the records of migrations were read: the table of each of them was there by then.
    rejectLost(wanted, applied, await readTables(client), config.CLICKHOUSE_DATABASE);
    const newest = wanted.at(-1)?.number ?? 0;
    const unknown = [...applied.keys()].filter((number) => number > newest);
    if (unknown.length > 0)
      logger.warn({ migrations: unknown }, 'the database has migrations of a newer version; it is used as it is');
    const missing = wanted.filter(({ number }) => !applied.has(number));
    for (const { number, name, sql, checksum } of missing) {
      await client.command({ query: sql, clickhouse_settings: { wait_end_of_query: 1 } });
      await client.insert({ table: 'schema_migrations', values: [{ number, name, checksum }], format: 'JSONEachRow' });
      logger.info({ migration: name }, 'applied a migration');
    }
    return missing.map(({ number }) => number);
  } finally {
    await client.close();
  }
}

/**
 * Returns whether the database has every migration of these files.
 *
 * @throws ClickHouse's errors, also when the database does not exist yet
 */
export async function isMigrated(client: ClickHouseClient): Promise<boolean> {
  const [wanted, applied] = await Promise.all([readMigrations(), appliedChecksums(client)]);
  return wanted.every(({ number }) => applied.has(number));
}

async function createDatabase(config: ClickHouseConfig): Promise<void> {
  const server = createClickHouse(
    { ...config, CLICKHOUSE_DATABASE: 'default' },
    { application: 'sluice-migrate', requestTimeoutMs: 60_000, connectionsMax: 1 },
  );
  try {
    await server.command({
      query: 'CREATE DATABASE IF NOT EXISTS {database:Identifier}',
      query_params: { database: config.CLICKHOUSE_DATABASE },
    });
  } finally {
    await server.close();
  }
}

async function appliedChecksums(client: ClickHouseClient): Promise<ReadonlyMap<number, string>> {
  const result = await client.query({
    query: 'SELECT number, any(checksum) AS checksum FROM schema_migrations GROUP BY number',
    format: 'JSONEachRow',
  });
  const rows = await result.json<{ number: number; checksum: string }>();
  return new Map(rows.map(({ number, checksum }) => [number, checksum]));
}

function rejectChanged(wanted: readonly Migration[], applied: ReadonlyMap<number, string>): void {
  for (const { number, name, checksum } of wanted) {
    if (applied.has(number) && applied.get(number) !== checksum) {
      throw new MigrationMismatch(
        `migration ${name} was changed after it had been applied; restore the file and add a new migration`,
      );
    }
  }
}

async function readTables(client: ClickHouseClient): Promise<ReadonlySet<string>> {
  const result = await client.query({
    query: 'SELECT name FROM system.tables WHERE database = currentDatabase()',
    format: 'JSONEachRow',
  });
  return new Set((await result.json<{ name: string }>()).map(({ name }) => name));
}

/** Migrations create tables in their order, so no table is missing before one that is there. */
function rejectLost(
  wanted: readonly Migration[],
  applied: ReadonlyMap<number, string>,
  tables: ReadonlySet<string>,
  database: string,
): void {
  const created = wanted.flatMap(({ number, sql }) => {
    const table = /^CREATE TABLE IF NOT EXISTS (\w+)/m.exec(sql)?.[1];
    return table === undefined ? [] : [{ number, table }];
  });
  const last = created.findLastIndex(({ table }) => tables.has(table));
  const lost = created.filter(
    ({ number, table }, index) => !tables.has(table) && (applied.has(number) || index < last),
  );
  // Where even the records are lost, the database is new again, and the writer halts its partitions.
  if (lost.length === 0) return;
  const names = lost.map(({ table }) => table).join(', ');
  throw new TablesLost(
    `the database ${database} has lost tables (${names}): restore all of it from a backup, or drop all of it; ` +
      'docs/durability.md says how to store again what Kafka has',
  );
}

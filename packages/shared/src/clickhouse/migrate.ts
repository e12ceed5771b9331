import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import type { Logger } from '../base/log.ts';
import { sleep } from '../base/retry.ts';
import { type ClickHouseConfig, isReplicated, isShared } from '../config/config.ts';
import { type ClickHouseClient, createClickHouse } from './client.ts';
import { ErrorCodes } from './error-codes.ts';
import { createdTable, inWaves } from './migration-waves.ts';
import { requireSharedTables, requireUsableServer } from './one-server.ts';
import { replicatedSql } from './replicated-tables.ts';

const MIGRATIONS = new URL('./migrations/', import.meta.url);
/** Each server has its own, also of replicas. */
export const CREATE_RECORDS = `CREATE TABLE IF NOT EXISTS schema_migrations
  (number UInt32, name String, checksum String, applied_at DateTime DEFAULT now())
  ENGINE = ReplacingMergeTree ORDER BY number`;
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

/** A newer version has changed the database in a way that this version cannot work with. */
export class SchemaTooNew extends Error {
  override readonly name = 'SchemaTooNew';
}

/** The end of the file name of a migration after which older versions must not run. */
export const NO_DOWNGRADE = '-no-downgrade.sql';

/**
 * Reads the numbered `.sql` files, in order. Each holds one statement that may be run again (`IF NOT EXISTS`). The name of
 * one that older versions cannot work with ends with `-no-downgrade.sql`: they read the names of those that they do not
 * know.
 */
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
 * Brings the database to the newest schema: creates it if it is missing, and applies the migrations that are missing.
 * Migrations of different tables are one request, so that a new database takes 19 requests, and one that is up to date 6, of which
 * {@link requireUsableServer} makes four at once.
 *
 * Several services may call it at the same time. ClickHouse has no locks, so each migration is one statement that can be
 * repeated, and the records of it merge into one.
 *
 * The tables of replicas are replicated ones: `migrateReplicas` works on all of them. Where replicas share the rows behind one address, the
 * statements run one by one.
 *
 * A database that is newer than these files stays as it is: migrations only add, so that a service can be rolled back,
 * unless one of the newer migrations says that it cannot.
 *
 * @returns the numbers of the migrations that this call applied
 * @throws {SchemaTooNew} when the database has a migration after which this version must not run
 * @throws {MigrationMismatch} when an applied migration's checksum differs
 * @throws {TablesLost} when a part of the tables is gone: new ones would be empty beside those that remain
 * @throws {UnusableServer} as {@link requireUsableServer} does
 */
export async function migrate(
  config: ClickHouseConfig,
  logger: Logger,
  migrations?: readonly Migration[],
): Promise<number[]> {
  const wanted = migrations ?? (await readMigrations());
  const account = migrateAccount(config);
  const client = createClickHouse(account, {
    application: 'sluice-migrate',
    requestTimeoutMs: 60_000,
    connectionsMax: 1,
  });
  try {
    const recorded = isShared(config) ? await recordedAnywhere(client) : await recordedOrNone(client);
    if (recorded) await rejectWrong(wanted, recorded, client, config.CLICKHOUSE_DATABASE, isShared(config));
    else await createDatabase(account);
    await requireUsableServer(account);
    const applied: AppliedMigrations = recorded ?? new Map();
    const unknown = unknownNames(wanted, applied);
    if (unknown.length > 0)
      logger.warn({ migrations: unknown }, 'the database has migrations of a newer version; it is used as it is');
    const missing = wanted.filter(({ number }) => !applied.has(number));
    const sqlOf = isReplicated(config) ? replicatedSql : (sql: string) => sql;
    const own = missing.map((one) => ({ ...one, sql: sqlOf(one.sql) }));
    if (isShared(config)) return await applyOneByOne(client, own, logger);
    await apply(client, own, wanted, logger);
    return missing.map(({ number }) => number);
  } finally {
    await client.close();
  }
}

/**
 * @param isOfReplicas whether another replica may answer each time. Default: no
 * @throws {SchemaTooNew}
 * @throws {MigrationMismatch}
 * @throws {TablesLost}
 */
export async function rejectWrong(
  wanted: readonly Migration[],
  recorded: AppliedMigrations,
  client: ClickHouseClient,
  database: string,
  isOfReplicas = false,
): Promise<void> {
  rejectTooNew(wanted, recorded);
  rejectChanged(wanted, recorded);
  // After the records of migrations were read: the table of each of them was there by then.
  await rejectLost(wanted, recorded, client, database, isOfReplicas ? LOOKS_MAX : 1);
}

/**
 * Returns how to reach ClickHouse with the account that may change tables: the service's own, unless another is named,
 * which has its own password or none.
 */
export function migrateAccount(config: ClickHouseConfig): ClickHouseConfig {
  const { CLICKHOUSE_MIGRATE_USER: user, CLICKHOUSE_MIGRATE_PASSWORD: password } = config;
  if (user === undefined) return config;
  const url = new URL(config.CLICKHOUSE_URL);
  // A login in the address would come first.
  Object.assign(url, { username: '', password: '' });
  return {
    ...config,
    CLICKHOUSE_URL: url.href,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
  };
}

/** Applies migrations and records them, also those before one that fails: a retry would repeat their work. */
async function apply(
  client: ClickHouseClient,
  missing: readonly Migration[],
  all: readonly Migration[],
  logger: Logger,
): Promise<void> {
  if (missing.length === 0) return;
  const tables = all.map(createdTable).filter((table) => table !== undefined);
  const applied: Migration[] = [];
  try {
    for (const [index, wave] of inWaves(missing, tables).entries()) {
      const statements = [...(index === 0 ? [CREATE_RECORDS] : []), ...wave.map(({ sql }) => sql)];
      await client.command({
        query: statements.join('\nPARALLEL WITH\n'),
        clickhouse_settings: { wait_end_of_query: 1 },
      });
      applied.push(...wave);
    }
  } finally {
    await record(client, applied, logger);
  }
}

/** How the statements of one migration are separated. */
const PARALLEL_WITH = /\nPARALLEL WITH\n/;

/**
 * Applies migrations where replicas share the rows of tables. There each statement that changes tables is carried to all replicas by itself, and
 * the next one may reach a replica that does not have the change yet: then it is sent again. It takes so long that others may have applied
 * some meanwhile, and have stored rows: those are not applied again.
 *
 * @returns the numbers of those that it applied
 * @throws {UnusableServer} when replicas do not share the tables
 */
async function applyOneByOne(
  client: ClickHouseClient,
  missing: readonly Migration[],
  logger: Logger,
): Promise<number[]> {
  const applied: number[] = [];
  const send = (query: string) =>
    onceKnown(() => client.command({ query, clickhouse_settings: { wait_end_of_query: 1 } }));
  if (missing.length > 0) await send(CREATE_RECORDS);
  await requireSharedTables(client);
  for (const migration of missing) {
    if ((await onceKnown(() => readApplied(client))).has(migration.number)) continue;
    for (const statement of migration.sql.split(PARALLEL_WITH)) await send(statement);
    await onceKnown(() => record(client, [migration], logger));
    applied.push(migration.number);
  }
  if (applied.length > 0) await requireSharedTables(client);
  return applied;
}

/** As {@link recordedOrNone}, where a replica that answers need not know yet what is there. */
async function recordedAnywhere(client: ClickHouseClient): Promise<AppliedMigrations | undefined> {
  for (let look = 1; ; look += 1) {
    const recorded = await recordedOrNone(client);
    if (look === LOOKS_MAX || (recorded?.size ?? 0) > 0) return recorded;
    await sleep(LOOK_MS);
  }
}

/** What a replica says that does not know yet what was created or changed at another one. */
const NOT_KNOWN = new ErrorCodes(
  ...(['UNKNOWN_DATABASE', 'UNKNOWN_TABLE', 'UNKNOWN_IDENTIFIER'] as const),
  ...(['NO_SUCH_COLUMN_IN_TABLE', 'NOT_FOUND_COLUMN_IN_BLOCK', 'CANNOT_ASSIGN_ALTER'] as const),
);

/** How often, and after how many milliseconds each time, a replica is given what it needs to get to know a change. */
const LOOKS_MAX = 20;
const LOOK_MS = 250;

async function onceKnown<Result>(send: () => Promise<Result>): Promise<Result> {
  for (let look = 1; ; look += 1) {
    try {
      return await send();
    } catch (error) {
      if (look === LOOKS_MAX || !NOT_KNOWN.has((error as { code?: string }).code ?? '')) throw error;
      await sleep(LOOK_MS);
    }
  }
}

/** Records migrations that a database has now. */
export async function record(
  client: ClickHouseClient,
  applied: readonly Pick<Migration, 'number' | 'name' | 'checksum'>[],
  logger: Logger,
): Promise<void> {
  if (applied.length === 0) return;
  const values = applied.map(({ number, name, checksum }) => ({ number, name, checksum }));
  await client.insert({ table: 'schema_migrations', values, format: 'JSONEachRow' });
  logger.info({ migrations: applied.map(({ name }) => name) }, 'applied migrations');
}

/**
 * Returns whether the database has every migration of these files.
 *
 * @throws {SchemaTooNew} when it has a migration after which this version must not run
 * @throws ClickHouse's errors, also when the database does not exist yet
 */
export async function isMigrated(client: ClickHouseClient): Promise<boolean> {
  const [wanted, applied] = await Promise.all([readMigrations(), readApplied(client)]);
  rejectTooNew(wanted, applied);
  return wanted.every(({ number }) => applied.has(number));
}

export async function createDatabase(config: ClickHouseConfig): Promise<void> {
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

/** A migration as the database has recorded it. */
export interface AppliedMigration {
  /** The name of its file. */
  readonly name: string;
  readonly checksum: string;
  /** Seconds since 1970. */
  readonly appliedAt: number;
}

/** By their numbers. */
export type AppliedMigrations = ReadonlyMap<number, AppliedMigration>;

/** Reads which migrations the database has. @throws ClickHouse's errors, also when it does not exist yet */
export async function readApplied(client: ClickHouseClient): Promise<AppliedMigrations> {
  const result = await client.query({
    query: `SELECT number, any(name) AS name, any(checksum) AS checksum, toUnixTimestamp(min(applied_at)) AS appliedAt
      FROM schema_migrations GROUP BY number ORDER BY number`,
    format: 'JSONEachRow',
  });
  const rows = await result.json<AppliedMigration & { number: number }>();
  return new Map(rows.map(({ number, ...applied }) => [number, applied]));
}

/** Returns the files of migrations that the database has and these files do not. */
export function unknownNames(wanted: readonly Migration[], applied: AppliedMigrations): string[] {
  const newest = wanted.at(-1)?.number ?? 0;
  return [...applied].filter(([number]) => number > newest).map(([, { name }]) => name);
}

function rejectTooNew(wanted: readonly Migration[], applied: AppliedMigrations): void {
  const breaking = unknownNames(wanted, applied).filter((name) => name.endsWith(NO_DOWNGRADE));
  if (breaking.length === 0) return;
  throw new SchemaTooNew(
    `a newer version has changed the database so that this one cannot use it (${breaking.join(', ')}): ` +
      'run the newer version, or restore a backup from before that upgrade',
  );
}

function rejectChanged(wanted: readonly Migration[], applied: AppliedMigrations): void {
  for (const { number, name, checksum } of wanted) {
    const recorded = applied.get(number);
    if (recorded && recorded.checksum !== checksum) {
      throw new MigrationMismatch(
        `migration ${name} was changed after it had been applied; restore the file and add a new migration`,
      );
    }
  }
}

/** Returns {@link readApplied}, empty where nothing is recorded yet, and undefined where there is no database. */
export async function recordedOrNone(client: ClickHouseClient): Promise<AppliedMigrations | undefined> {
  try {
    return await readApplied(client);
  } catch (error) {
    const { type } = error as { type?: unknown };
    if (type === 'UNKNOWN_DATABASE') return undefined;
    if (type === 'UNKNOWN_TABLE') return new Map();
    throw error;
  }
}

/** Returns for each table whether it has rows. */
async function readTables(client: ClickHouseClient): Promise<ReadonlyMap<string, boolean>> {
  const result = await client.query({
    query: 'SELECT name, total_rows > 0 AS filled FROM system.tables WHERE database = currentDatabase()',
    format: 'JSONEachRow',
  });
  const rows = await result.json<{ name: string; filled: 0 | 1 | null }>();
  return new Map(rows.map(({ name, filled }) => [name, filled === 1]));
}

/**
 * A table is lost when its migration is recorded. Where records are lost too, a table with rows shows it: nothing is
 * stored before all tables are there, and later versions only add tables.
 */
function lostTables(
  wanted: readonly Migration[],
  applied: AppliedMigrations,
  tables: ReadonlyMap<string, boolean>,
): string[] {
  const created = wanted.flatMap((migration) => {
    const table = createdTable(migration);
    return table === undefined ? [] : [{ number: migration.number, table }];
  });
  const last = created.findLastIndex(({ table }) => tables.get(table));
  const lost = created.filter(
    ({ number, table }, index) => !tables.has(table) && (applied.has(number) || index < last),
  );
  return lost.map(({ table }) => table);
}

/**
 * Where even the records are lost, the database is new again, and the writer halts its partitions.
 *
 * The list of tables is no snapshot, and lacks tables that the account may not see (`sluice_query` has no right on
 * `webhooks`). So ClickHouse is asked about each that it lacks: whatever made the table look lost is older than that
 * answer, so while another service creates the tables, it is there by then.
 *
 * @param looks how often a table has to be lost: another replica than the one that has the records may not know the table yet
 */
async function rejectLost(
  wanted: readonly Migration[],
  applied: AppliedMigrations,
  client: ClickHouseClient,
  database: string,
  looks: number,
): Promise<void> {
  const lost: string[] = [];
  for (const table of lostTables(wanted, applied, await readTables(client))) {
    if (await isGone(client, table)) lost.push(table);
  }
  if (lost.length === 0) return;
  if (looks > 1) {
    await sleep(LOOK_MS);
    return await rejectLost(wanted, applied, client, database, looks - 1);
  }
  const names = lost.join(', ');
  throw new TablesLost(
    `the database ${database} has lost tables (${names}): restore all of it from a backup, or drop all of it; ` +
      'docs/operate/backup.md says how to store again what Kafka has',
  );
}

/** Returns whether the table is known not to exist: false, too, where the account may not know. */
async function isGone(client: ClickHouseClient, table: string): Promise<boolean> {
  try {
    const result = await client.query({
      query: 'EXISTS TABLE {table:Identifier}',
      query_params: { table },
      format: 'JSONEachRow',
    });
    const [found] = await result.json<{ result: 0 | 1 }>();
    return found?.result === 0;
  } catch (error) {
    if ((error as { type?: unknown }).type === 'ACCESS_DENIED') return false;
    throw error;
  }
}

import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, inject, onTestFinished, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { eventually } from '../testing/eventually.ts';
import { createClickHouse } from './client.ts';
import {
  isMigrated,
  type Migration,
  MigrationMismatch,
  migrate,
  readMigrations,
  SchemaTooNew,
  TablesLost,
} from './migrate.ts';
import { ADMINISTRATOR, WRITER_ACCOUNT } from './testing/test-accounts.ts';

const logger = createLogger('test', 'silent');

function config(database: string) {
  return {
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: database,
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  };
}

const client = createClickHouse(config('migrate_once'), {
  application: 'test',
  requestTimeoutMs: 240_000,
  connectionsMax: 2,
});
afterAll(() => client.close());

/** Migrations that databases have applied. Append only: a change goes into a new migration. */
const FROZEN: readonly (readonly [file: string, checksum: string])[] = [
  ['0001-events.sql', 'f532a3dd6b31f6606e4bbdcbee9fd7614c220e89b8ba2bd729e6a7caa30a5d90'],
  ['0002-entities.sql', '7639d61007effc53825d99e3725a6f264d5a76aea2f38b0d1f33243c9cc5667e'],
  ['0003-entity-properties.sql', 'f90258e732b3fdc32accc9a2838967ce63a4dfc6be109903021917c0e0920a52'],
  ['0004-user-deletions.sql', '8101f04a02bb4e953ab9d82e648587d285df7d9ab9509388acf05a86ce05df45'],
  ['0005-user-sightings.sql', 'bcb422efcbd62d87438c133a180c841a2c3418f15d438163e9fd86263c28cc0d'],
  ['0006-writer-epochs.sql', 'e540222e6c161a92c2edd68493872fb4be92b9db9bf4b84251de42deaa822cad'],
  ['0007-writer-positions.sql', '266a00ff476e8dcbe17926a20f9b6a0349b6cbe935675a4a86bdef1f63073485'],
  ['0008-writer-halts.sql', '024703535b476d2c5561719a08b045dcb676fa6d1a8fee40056f2783e95ea990'],
  ['0009-dead-letters.sql', '76647787571ebf64f242ef5ba756a4e4505fd7d1bff0acaddc3671f0c2889ece'],
  ['0010-pending-deletions.sql', 'f35dc4d81a3d9a23055f4f77e446d937b0a790cbe4ba5f64725a51a0aaf2f3a9'],
  ['0011-topic-partitions.sql', 'ecb537bb46e09c01364b7f364f734f34c16e0b9d248b6bad215a6e9e0576bc0c'],
];

test('a migration that databases have applied never changes', async () => {
  const migrations = (await readMigrations()).map(({ name, checksum }) => [name, checksum]);
  expect(migrations.slice(0, FROZEN.length)).toEqual(FROZEN);
});

test('where replicas are to share the rows, tables of one server alone are refused', async () => {
  const shared = { ...config('migrate_shared'), CLICKHOUSE_REPLICATION: 'shared' } as const;
  await expect(migrate(shared, logger)).rejects.toThrow(/replicas have to share the rows of tables/);
});

test('migrations run with the account for them, and with the own one where no other is named', async () => {
  const ofWriter = { ...config('test_migrate_account'), ...WRITER_ACCOUNT };
  const { CLICKHOUSE_MIGRATE_USER, CLICKHOUSE_MIGRATE_PASSWORD, ...own } = ofWriter;
  await expect(migrate(own, logger)).rejects.toThrow(
    'necessary to have the grant CREATE DATABASE ON test_migrate_account.*',
  );
  expect(await migrate(ofWriter, logger)).toContain(1);
  expect(await migrate({ ...own, ...ADMINISTRATOR }, logger)).toEqual([]);
});

test('several services that start together bring the database to the newest schema once', async () => {
  await Promise.all(Array.from({ length: 6 }, () => migrate(config('migrate_once'), logger)));
  expect(await isMigrated(client)).toBe(true);
  expect(await migrate(config('migrate_once'), logger)).toEqual([]);
  const tables = await client.query({
    query: 'SELECT name FROM system.tables WHERE database = currentDatabase() ORDER BY name',
    format: 'JSONEachRow',
  });
  expect((await tables.json<{ name: string }>()).map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'entities',
      'entity_properties',
      'events',
      'pending_deletions',
      'schema_migrations',
      'user_deletions',
      'user_sightings',
    ]),
  );
});

test('every migration may be run again', async () => {
  await migrate(config('migrate_once'), logger);
  for (const { sql } of await readMigrations()) await client.command({ query: sql });
});

test('an upgrade does not wait for the counts by hour of the events that are stored already', async () => {
  const all = await readMigrations();
  const before = all.filter(({ number }) => number < 14);
  await migrate(config('migrate_filled'), logger, before);
  await using started = new AsyncDisposableStack();
  const filled = createClickHouse(config('migrate_filled'), {
    application: 'test',
    requestTimeoutMs: 60_000,
    connectionsMax: 2,
  });
  started.defer(() => filled.close());
  const read = async (query: string, settings: Readonly<Record<string, number>> = {}) =>
    await (await filled.query({ query, format: 'JSONCompactEachRow', clickhouse_settings: settings })).json<
      unknown[]
    >();
  const store = () =>
    filled.command({
      query: `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
        SELECT 'a', toDateTime64('2026-03-01', 3) + toIntervalMinute(number), generateUUIDv4(number),
          concat('e', toString(number % 3)), '2026-03-01' FROM numbers(1000)`,
    });
  const counts = `SELECT event, toStartOfInterval(timestamp, toIntervalMillisecond(3600000)) AS hour,
      count(), min(timestamp), max(timestamp)
    FROM events WHERE workspace_id = 'a' GROUP BY event, hour ORDER BY event, hour`;
  const rows = () => read(counts, { optimize_use_projections: 0 });
  await store();
  // Mutations stop with merges, in this table alone.
  await filled.command({ query: 'SYSTEM STOP MERGES events' });
  expect(await migrate(config('migrate_filled'), logger, all)).toEqual(
    all.slice(before.length).map(({ number }) => number),
  );
  await store();
  // The projection of the new part answers; for the old one, its rows do.
  const mixed = await read(counts, { force_optimize_projection: 1 });
  expect(mixed).toHaveLength(3 * 17);
  expect(mixed).toEqual(await rows());
  await filled.command({ query: 'SYSTEM START MERGES events' });
  const without = `SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active
    AND NOT hasAll(projections, ['by_hour', 'by_day'])`;
  await eventually(() => read(without)).toEqual([[0]]);
  expect(await read(counts, { force_optimize_projection: 1 })).toEqual(mixed);
});

test('every table of rows syncs them to disk before an insert returns', async () => {
  await migrate(config('migrate_once'), logger);
  // Rows of storing_progress are only used while they are new, and are recorded all the time.
  const tables = await client.query({
    query: `SELECT name FROM system.tables
      WHERE database = currentDatabase() AND name NOT IN ('schema_migrations', 'storing_progress')
      AND NOT create_table_query LIKE '%fsync_after_insert = 1, fsync_part_directory = 1%'`,
    format: 'JSONEachRow',
  });
  expect(await tables.json()).toEqual([]);
});

test('a migration that was changed after it had been applied is refused', async () => {
  const [first] = await readMigrations();
  const changed: Migration = { ...(first as Migration), checksum: '0'.repeat(64) };
  await migrate(config('migrate_changed'), logger, [first as Migration]);
  await expect(migrate(config('migrate_changed'), logger, [changed])).rejects.toThrow(MigrationMismatch);
});

test.each(['of the tables', 'of the tables, with the records of migrations,'])(
  'a database that has lost one %s is not completed with an empty one',
  async (what) => {
    const database = `migrate_lost_${what.length}`;
    await migrate(config(database), logger);
    await client.command({ query: `INSERT INTO ${database}.writer_groups (group_id) VALUES ('g')` });
    await client.command({ query: `DROP TABLE ${database}.events SYNC` });
    if (what.includes('records')) await client.command({ query: `DROP TABLE ${database}.schema_migrations SYNC` });
    const completed = migrate(config(database), logger);
    await expect(completed).rejects.toThrow(TablesLost);
    await expect(completed).rejects.toThrow(`the database ${database} has lost tables (events)`);
    await client.command({ query: `DROP DATABASE ${database} SYNC` });
    expect(await migrate(config(database), logger)).toContain(1);
  },
);

test('a migration that was interrupted is completed', async () => {
  const all = await readMigrations();
  await migrate(config('migrate_interrupted'), logger, all.slice(0, 6));
  await client.command({ query: 'TRUNCATE TABLE migrate_interrupted.schema_migrations' });
  expect(await migrate(config('migrate_interrupted'), logger)).toEqual(all.map(({ number }) => number));
});

test('one that was interrupted while it created tables is completed, in whatever order they were created', async () => {
  const all = await readMigrations();
  await client.command({ query: 'CREATE DATABASE migrate_half' });
  await client.command({ query: all[3]?.sql.replace('user_deletions', 'migrate_half.user_deletions') ?? '' });
  expect(await migrate(config('migrate_half'), logger)).toEqual(all.map(({ number }) => number));
});

test('one that fails is repeated, and not what was applied before it', async () => {
  const all = await readMigrations();
  const [first, second] = all.slice(-2).map((migration, index) => ({ ...migration, number: all.length + 1 + index }));
  // Of the table with most migrations: what runs at the same time as one that fails is repeated as well.
  const fails = { ...first, sql: 'ALTER TABLE events DROP COLUMN no_such_column' } as Migration;
  const repeated = { ...second, sql: "ALTER TABLE events COMMENT COLUMN properties 'JSON'" } as Migration;
  await expect(migrate(config('migrate_failed'), logger, [...all, fails])).rejects.toThrow('no_such_column');
  expect(await migrate(config('migrate_failed'), logger, [...all, { ...fails, sql: repeated.sql }, repeated])).toEqual([
    fails.number,
    repeated.number,
  ]);
});

test('a new database takes 19 requests, and one that is up to date 6', async () => {
  let requests = 0;
  const proxy = createServer((incoming, outgoing) => {
    requests += 1;
    const { method, headers, url = '/' } = incoming;
    const upstream = request(new URL(url, inject('clickhouseUrl')), { method, headers, agent: false });
    upstream.on('response', (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(upstream);
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  const counted = { ...config('migrate_counted'), CLICKHOUSE_URL: `http://127.0.0.1:${port}` };
  await migrate(counted, logger);
  expect(requests).toBe(19);
  await migrate(counted, logger);
  expect(requests).toBe(19 + 6);
});

test('a database with migrations of a newer version is used as it is, so that a service can be rolled back', async () => {
  const all = await readMigrations();
  await migrate(config('migrate_newer'), logger, all);
  expect(await migrate(config('migrate_newer'), logger, all.slice(0, 2))).toEqual([]);
});

test('a database with a newer migration that older versions cannot work with is refused, and its file named', async () => {
  const all = await readMigrations();
  const [last] = all.slice(-1) as [Migration];
  const breaking: Migration = { ...last, number: all.length + 1, name: '9999-renamed-events-no-downgrade.sql' };
  await migrate(config('migrate_breaking'), logger, [...all, breaking]);
  const downgraded = migrate(config('migrate_breaking'), logger, all);
  await expect(downgraded).rejects.toThrow(SchemaTooNew);
  await expect(downgraded).rejects.toThrow('9999-renamed-events-no-downgrade.sql');
});

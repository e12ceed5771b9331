import { afterAll, expect, inject, test } from 'vitest';
import { createLogger } from '../log.ts';
import { createClickHouse } from './client.ts';
import { isMigrated, type Migration, MigrationMismatch, migrate, readMigrations } from './migrate.ts';

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
  requestTimeoutMs: 10_000,
  connectionsMax: 2,
});
afterAll(() => client.close());

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

test('every table of rows syncs them to disk before an insert returns', async () => {
  await migrate(config('migrate_once'), logger);
  const tables = await client.query({
    query: `SELECT name FROM system.tables WHERE database = currentDatabase() AND name != 'schema_migrations'
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

test('a database with migrations of a newer version is used as it is, so that a service can be rolled back', async () => {
  const all = await readMigrations();
  await migrate(config('migrate_newer'), logger, all);
  expect(await migrate(config('migrate_newer'), logger, all.slice(0, 2))).toEqual([]);
});

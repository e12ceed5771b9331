import { createHash } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { retry } from '@sluice/shared/base/retry';
import {
  type Migration,
  MigrationMismatch,
  migrate,
  readMigrations,
  TablesLost,
} from '@sluice/shared/clickhouse/migrate';
import { migrateReplicas, ReplicaBehind } from '@sluice/shared/clickhouse/migrate-replicas';
import { ADMINISTRATOR } from '@sluice/shared/clickhouse/testing/test-accounts';
import type { ClickHouseConfig } from '@sluice/shared/config';
import { expect, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startReplicas } from '../kit/replicas.ts';

const DATABASE = 'sluice';
const logger = createLogger('test', 'silent');

const configOf = ({ url }: { readonly url: string }): ClickHouseConfig => ({
  ...{ CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: DATABASE, CLICKHOUSE_REPLICATION: 'replicated' },
  ...ADMINISTRATOR,
});

/** As writers do, who start at the same time. */
const untilMigrated = (configs: readonly ClickHouseConfig[], wanted: readonly Migration[]) =>
  retry(() => migrateReplicas(configs, logger, wanted), {
    ...{ firstMs: 100, maxMs: 1_000, signal: new AbortController().signal },
    onFailure: (error) => {
      if (error instanceof MigrationMismatch || error instanceof TablesLost) throw error;
    },
  });

function migration(number: number, name: string, sql: string): Migration {
  return { number, name: `${number}-${name}.sql`, sql, checksum: createHash('sha256').update(sql).digest('hex') };
}

test('all replicas get the same tables and records, also one that is added later, and after an upgrade', async () => {
  await using replicas = await startReplicas(['r1', 'r2', 'r3']);
  const { r1, r2, r3 } = replicas.servers;
  const all = [r1, r2, r3].map(configOf);
  const two = all.slice(0, 2);
  const wanted = await readMigrations();
  await Promise.all([untilMigrated(two, wanted), untilMigrated(two, wanted), untilMigrated(two.toReversed(), wanted)]);
  const row = "SELECT 'w', now64(3), generateUUIDv4(), 'e', now64(6)";
  await readClickHouse(
    r1.url,
    `INSERT INTO ${DATABASE}.events (workspace_id, timestamp, uuid, event, received_at) ${row}`,
  );
  await readClickHouse(
    r1.url,
    `INSERT INTO ${DATABASE}.database_identity (id, server, partitions) VALUES (generateUUIDv4(), '', 'all')`,
  );
  // A call was interrupted, and ClickHouse fills the table that it had created.
  const identity = `database = '${DATABASE}' AND name = 'database_identity'`;
  const create = `SELECT create_table_query FROM system.tables WHERE ${identity} FORMAT TSVRaw`;
  await readClickHouse(r3.url, `CREATE DATABASE ${DATABASE}`);
  await readClickHouse(r3.url, await readClickHouse(r1.url, create));
  await readClickHouse(r3.url, `SYSTEM SYNC REPLICA ${DATABASE}.database_identity`);
  // What an operator keeps there is none of theirs.
  await readClickHouse(r1.url, `CREATE TABLE ${DATABASE}.notes (note String) ENGINE = MergeTree ORDER BY note`);
  await Promise.all([untilMigrated(all, wanted), untilMigrated(all, wanted)]);
  const next = wanted.length + 1;
  const newer = [
    ...wanted,
    migration(next, 'column', 'ALTER TABLE events ADD COLUMN IF NOT EXISTS added String'),
    migration(next + 1, 'own', 'ALTER TABLE writer_epochs ADD COLUMN IF NOT EXISTS added String'),
    // ClickHouse carries no settings to other replicas.
    migration(next + 2, 'setting', 'ALTER TABLE events MODIFY SETTING max_replicated_merges_in_queue = 17'),
    migration(next + 3, 'table', 'CREATE TABLE IF NOT EXISTS added (n UInt64)\nENGINE = MergeTree\nORDER BY n'),
  ];
  // The writers of two versions run at the same time.
  await untilMigrated(all.toReversed(), newer);
  expect(await untilMigrated(all, wanted)).toEqual([]);

  await readClickHouse(r1.url, `DROP TABLE ${DATABASE}.notes`);
  const tables = 'SELECT name, engine, create_table_query FROM system.tables';
  const states = await Promise.all(
    [r1, r2, r3].map(async ({ url }) => ({
      tables: await readClickHouse(url, `${tables} WHERE database = '${DATABASE}' ORDER BY name`),
      records: await readClickHouse(
        url,
        `SELECT DISTINCT number, checksum FROM ${DATABASE}.schema_migrations ORDER BY 1`,
      ),
    })),
  );
  for (const state of states) expect(state).toEqual(states[0]);
  const plain = `SELECT name FROM system.tables WHERE database = '${DATABASE}' AND NOT startsWith(engine, 'Replicated') ORDER BY 1`;
  expect((await readClickHouse(r3.url, plain)).trim().split('\n')).toEqual([
    ...['schema_migrations', 'stream_order', 'writer_epochs'],
  ]);
  await readClickHouse(r3.url, `SYSTEM SYNC REPLICA ${DATABASE}.events`);
  expect(Number(await readClickHouse(r3.url, `SELECT count() FROM ${DATABASE}.events WHERE added = ''`))).toBe(1);

  await readClickHouse(r2.url, `SYSTEM STOP REPLICATION QUEUES ${DATABASE}.events`);
  const late = 'ALTER TABLE events ADD COLUMN IF NOT EXISTS late String SETTINGS alter_sync = 0';
  const newest = [...newer, migration(next + 4, 'late', late)];
  await expect(migrateReplicas(all, logger, newest)).rejects.toThrow(ReplicaBehind);
  await readClickHouse(r2.url, `SYSTEM START REPLICATION QUEUES ${DATABASE}.events`);
  await untilMigrated(all, newest);

  // One that does not know of the others would not tell them what it does.
  const alone = { ...configOf(r1), CLICKHOUSE_REPLICATION: 'none' } as const;
  await expect(migrate(alone, logger, newest)).rejects.toThrow(/are replicated: set CLICKHOUSE_REPLICATION=replicated/);
  const single = { ...alone, CLICKHOUSE_DATABASE: 'plain' };
  await migrate(single, logger);
  await expect(migrateReplicas([{ ...single, CLICKHOUSE_REPLICATION: 'replicated' }], logger)).rejects.toThrow(
    /are plain ones, which do not become replicated/,
  );

  const changed = newer.map((one) => (one.number === 1 ? { ...one, checksum: 'another' } : one));
  await expect(migrateReplicas(all, logger, changed)).rejects.toThrow(MigrationMismatch);
});

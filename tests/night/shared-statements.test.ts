import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { isMigrated, migrate, readMigrations } from '@sluice/shared/clickhouse/migrate';
import { WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import type { ClickHouseConfig } from '@sluice/shared/config';
import { eventually } from '@sluice/shared/testing/eventually';
import { SharedReplicas } from '@sluice/storage/clickhouse/shared-replicas';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { expect, onTestFinished, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startCloud } from '../kit/cloud.ts';

const DATABASE = 'test_shared';
const TIMEOUT_MS = 2_000;
const logger = createLogger('test', 'fatal');

const configOf = (url: string): ClickHouseConfig => ({
  ...{ CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: DATABASE, CLICKHOUSE_REPLICATION: 'shared' },
  ...WRITER_ACCOUNT,
});

function clientOf(url: string): ClickHouseClient {
  const client = createClickHouse(configOf(url), { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 4 });
  onTestFinished(() => client.close());
  return client;
}

test('behind one address, two that migrate at once create each table once, at all replicas', async () => {
  await using cloud = await startCloud();
  const config = configOf(cloud.url);
  const both = [migrate(config, logger), migrate(config, logger)];
  await Promise.race(both);
  // The one that has ended stores, and the other one must not take that for what was there before a migration.
  const event = "SELECT 'w', now64(3), generateUUIDv4(), 'e', now64(6)";
  const columns = 'workspace_id, timestamp, uuid, event, received_at';
  await readClickHouse(cloud.servers[0]?.url ?? '', `INSERT INTO ${DATABASE}.events (${columns}) ${event}`);
  await Promise.all(both);
  expect(await migrate(config, logger)).toEqual([]);
  expect(await isMigrated(clientOf(cloud.url))).toBe(true);
  const all = (await readMigrations()).map(({ number }) => number);
  for (const { url } of cloud.servers) {
    const engines = `SELECT DISTINCT startsWith(engine, 'Replicated') FROM system.tables WHERE database = '${DATABASE}'`;
    expect(await readClickHouse(url, engines)).toBe('1');
    await readClickHouse(url, `SYSTEM SYNC REPLICA ${DATABASE}.schema_migrations`);
    expect(await readClickHouse(url, `SELECT count() FROM ${DATABASE}.console_identity_settings`)).toBe('0');
    const recorded = `SELECT DISTINCT number FROM ${DATABASE}.schema_migrations ORDER BY number FORMAT TSV`;
    expect((await readClickHouse(url, recorded)).trim().split('\n').map(Number)).toEqual(all);
  }
});

test('what others have sent is over when nothing runs, and a replica that has left gets the time to end', async () => {
  await using cloud = await startCloud();
  await migrate(configOf(cloud.url), logger);
  const client = clientOf(cloud.url);
  const prefix = `sluice-writer/${randomUUID()}/`;
  const replicas = new SharedReplicas({ client, groupPrefix: prefix, statementTimeoutMs: TIMEOUT_MS });
  const slow = (name: string) =>
    client
      .query({
        query: 'SELECT sum(sleepEachRow(1)) FROM numbers(1000)',
        query_id: `${prefix}${name}`,
        clickhouse_settings: { max_block_size: '1' },
      })
      .then(
        () => 'done',
        (error: Error) => error.message,
      );
  const [older, own] = [[slow('1/a'), slow('1/b')], slow('2/c')];
  const running = async () => {
    const query_params = { prefix, except: '', ageMs: 0 };
    const result = await client.query({
      ...{ query: STATEMENTS['find-statements-everywhere'].sql, query_params, format: 'JSONEachRow' },
    });
    const rows = await result.json<{ replica: string; running: number }>();
    return rows.map((row) => row.running).toSorted();
  };
  await eventually(running).toEqual([1, 2]);

  await replicas.end({ prefix, except: `${prefix}2/` });
  for (const ended of await Promise.all(older)) expect(ended).toContain('cancelled');
  expect((await running()).toSorted()).toEqual([0, 1]);
  await replicas.end({ prefix });
  expect(await own).toContain('cancelled');

  const recorded = async () => {
    const result = await client.query({ query: STATEMENTS['read-replicas'].sql, format: 'JSONEachRow' });
    return (await result.json<{ replica: string; isGone: boolean }>()).map(({ replica, isGone }) => [replica, isGone]);
  };
  expect((await recorded()).map(([, isGone]) => isGone)).toEqual([false, false]);

  // A replica was there whose statements nobody can end now.
  const record = { replicas: ['another'], isGone: false };
  await client.command({ query: STATEMENTS['record-replicas'].sql, query_params: record });
  const startedAt = performance.now();
  await replicas.end({ prefix });
  expect(performance.now() - startedAt).toBeGreaterThan(2 * TIMEOUT_MS + 40_000);
  expect(await recorded()).toContainEqual(['another', true]);

  // While a replica does not answer, nobody knows what it runs.
  await cloud.servers[1]?.kill9();
  await expect(replicas.end({ prefix })).rejects.toThrow();
});

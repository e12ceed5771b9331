import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { Registry } from 'prom-client';
import { expect, inject, onTestFinished, test } from 'vitest';
import { ClickHouseReadings, STATEMENTS } from './clickhouse-readings.ts';
import { declareMeasuredMetrics } from './measured-metrics.ts';

const CONFIG = { ERASURE_DELAY_MS: 60_000, ERASURE_GATHER_MS: 0, ERASURE_INTERVAL_MS: 10_000 };

/** Declares the metrics that are read from this ClickHouse, and notes the queries and the lines of the log. */
async function declareFor(clickhouseUrl: string) {
  const { config, release } = await takeDatabase(inject('clickhouseUrl'));
  onTestFinished(() => release());
  const options = { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 2 };
  const client = createClickHouse({ ...config, CLICKHOUSE_URL: clickhouseUrl }, options);
  const queries: string[] = [];
  const query: ClickHouseClient['query'] = async (call) => {
    queries.push(call.query);
    return await client.query(call);
  };
  const lines: { reason: string; msg: string }[] = [];
  const logger = createLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line)) });
  const noting: Pick<ClickHouseClient, 'query' | 'close'> = { query, close: () => client.close() };
  const readings = new ClickHouseReadings(noting as ClickHouseClient, logger);
  onTestFinished(() => readings.stop());
  const registry = new Registry();
  const lag = async () => undefined;
  declareMeasuredMetrics(
    registry,
    {
      lag,
      replicas: () => undefined,
      backupAge: lag,
      audits: () => readings.audits(),
      comparisons: () => readings.comparisons(),
      server: () => readings.server(),
      erasures: () => readings.erasures(),
    },
    CONFIG,
  );
  return { registry, client, queries, lines };
}

/** The names of the metrics that have series, each once. */
function namesIn(text: string): string[] {
  return [...new Set([...text.matchAll(/^(\w+)[{ ]/gm)].map(([, name = '']) => name))];
}

test('all scrapes at the same time, and soon after, share one query of each kind', async () => {
  const { registry, queries } = await declareFor(inject('clickhouseUrl'));
  const scrapes = await Promise.all(Array.from({ length: 20 }, () => registry.metrics()));
  expect(namesIn(scrapes[19] ?? '')).toEqual([
    'sluice_clickhouse_disk_free_bytes',
    'sluice_clickhouse_disk_bytes',
    'sluice_clickhouse_partition_parts',
    'sluice_clickhouse_partition_parts_limit',
    'sluice_clickhouse_pending_mutations',
    'sluice_erasure_pending_users',
    'sluice_erasure_oldest_seconds',
    'sluice_erasure_deadline_seconds',
  ]);
  await registry.metrics();
  const statements = ['read-server-state', 'read-pending-erasures', 'read-audits', 'read-comparisons'] as const;
  expect(queries.sort()).toEqual(statements.map((name) => STATEMENTS[name].sql).sort());
});

test('what cannot be read is absent, the rest is there, and the log says why', async () => {
  const { registry, lines } = await declareFor('http://127.0.0.1:9');
  const [text = ''] = await Promise.all(Array.from({ length: 20 }, () => registry.metrics()));
  expect(namesIn(text)).toEqual(['sluice_erasure_deadline_seconds']);
  expect(lines.map(({ msg }) => msg).sort()).toEqual([
    'the audits cannot be read; their metrics are absent',
    'the comparisons with other servers cannot be read; their metrics are absent',
    'the disks and tables of ClickHouse cannot be read; their metrics are absent',
    'the pending erasures cannot be read; their metrics are absent',
  ]);
  expect(lines[0]?.reason).toContain('ECONNREFUSED');
});

test('an erasure is late when it has missed a round, waited for the next one, and that has taken six hours', async () => {
  const registry = new Registry();
  const unknown = async () => undefined;
  const config = { ERASURE_DELAY_MS: 60_000, ERASURE_GATHER_MS: 604_800_000, ERASURE_INTERVAL_MS: 10_000 };
  const others = { lag: unknown, server: unknown, erasures: unknown, backupAge: unknown };
  const readings = { ...others, audits: unknown, comparisons: unknown, replicas: () => undefined };
  declareMeasuredMetrics(registry, readings, config);
  expect(await registry.metrics()).toMatch(/^sluice_erasure_deadline_seconds 626470$/m);
});

test('the newest comparison with each other server counts, until it is three months old', async () => {
  const { registry, client } = await declareFor(inject('clickhouseUrl'));
  const record = (other: string, at: string, ...differing: string[]) =>
    client.command({
      query: `INSERT INTO server_comparisons (compared_at, other, differing)
        SELECT now64(3) - toIntervalDay({days:UInt32}), {other:String}, {differing:Array(String)}`,
      query_params: { days: Number(at), other, differing },
    });
  await record('a2', '14', 'events');
  await record('a2', '7');
  await record('a3', '2');
  await record('a3', '1', 'events', 'entities');
  await record('gone', '91', 'events');
  const text = await registry.metrics();
  expect(text).toMatch(/^sluice_servers_differ\{other="a2"\} 0\nsluice_servers_differ\{other="a3"\} 1$/m);
  expect(text).not.toContain('gone');
  const [, seconds] = /^sluice_servers_compared_timestamp_seconds\{other="a2"\} (\S+)$/m.exec(text) ?? [];
  expect(Math.round((Date.now() / 1_000 - Number(seconds)) / 86_400)).toBe(7);
});

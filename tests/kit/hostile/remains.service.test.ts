import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { open, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { withProcessMetrics } from '@sluice/shared/service/process-metrics';
import { eventually } from '@sluice/shared/testing/eventually';
import { Registry } from 'prom-client';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../clickhouse.ts';
import type { Product } from './product.ts';
import {
  Growth,
  HELD_MORE_MAX,
  type Held,
  heldBy,
  heldTooMuch,
  locksOf,
  REQUEST_ID_PREFIX,
  runsOn,
} from './remains.ts';

const PRODUCTS: readonly Product[] = [
  { door: 'query-api GET /events', corners: [], seed: 1 },
  { door: 'query-api POST /queries', corners: [], seed: 2 },
];

test('what a process holds: requests for threads of the pool, connections, timers', async () => {
  await using started = new AsyncDisposableStack();
  const registry = withProcessMetrics(new Registry());
  const server = createServer(async (_request, response) => response.end(await registry.metrics()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  started.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const held = () => heldBy({ url: `http://127.0.0.1:${port}` });
  const before = await held();

  const timers = Array.from({ length: 200 }, () => setTimeout(() => undefined, 600_000));
  // Timers of the requests before may have ended meanwhile.
  expect((await held()).timers).toBeGreaterThanOrEqual(before.timers + 150);
  for (const timer of timers) clearTimeout(timer);

  const sockets = Array.from({ length: 20 }, () => connect(port, '127.0.0.1'));
  await eventually(async () => (await held()).sockets).toBeGreaterThanOrEqual(before.sockets + 20);
  for (const socket of sockets) socket.destroy();

  // To open a pipe that nobody writes to takes a thread until somebody does.
  const { path } = started.use(await makeTempDir());
  const pipe = join(path, 'pipe');
  await promisify(execFile)('mkfifo', [pipe]);
  const reading = open(pipe, 'r');
  await eventually(async () => (await held()).pool).toBeGreaterThan(0);
  await writeFile(pipe, '');
  await (await reading).close();
  await eventually(held).toMatchObject({ pool: 0 });
});

test('what is more than pools keep is named, with the doors in whose rounds there was more than ever before', () => {
  const before: Held = { pool: 0, sockets: 10, timers: 3 };
  const atMost: Held = { pool: 0, sockets: 10 + HELD_MORE_MAX.sockets, timers: 3 + HELD_MORE_MAX.timers };
  expect(heldTooMuch('query-api', before, atMost)).toEqual([]);
  expect(heldTooMuch('query-api', before, { pool: 1, sockets: 75, timers: 68 })).toEqual([
    "query-api has 1 requests for libuv's pool, and had 0 before the first round",
    'query-api has 75 open connections, and had 10 before the first round',
    'query-api has 68 timers, and had 3 before the first round',
  ]);
  const growth = new Growth();
  const [one, other] = PRODUCTS as [Product, Product];
  growth.note('query-api', before, [one]);
  growth.note('query-api', before, [other]);
  expect(growth.of('query-api')).toBe('more than ever before in the rounds of query-api GET /events');
  growth.note('query-api', { ...before, sockets: 11 }, [other]);
  growth.note('writer', before, [one]);
  expect(growth.of('query-api')).toContain('query-api GET /events, query-api POST /queries');
});

test('a query that runs on after its response is named by its door', async () => {
  const url = inject('clickhouseUrl');
  const left = new AbortController();
  const id = `query-api/sql/${REQUEST_ID_PREFIX}1.17/0`;
  const parameters = new URLSearchParams({
    ...{ ...PINNED_SETTINGS, query_id: id, max_threads: '1' },
    ...{ readonly: '2', cancel_http_readonly_queries_on_client_close: '1' },
  });
  const query = fetch(`${url}/?${parameters}`, {
    method: 'POST',
    body: 'SELECT sum(cityHash64(number)) FROM numbers(1000000000000)',
    signal: left.signal,
  });
  query.catch(() => undefined);
  await eventually(() => readClickHouse(url, `SELECT count() FROM system.processes WHERE query_id = '${id}'`)).toBe(
    '1',
  );
  const found = await runsOn(url, PRODUCTS, 0);
  expect(found).toHaveLength(1);
  expect(found[0]).toMatch(/^query-api POST \/queries: as it is \(texts from 2\): a query still runs 0 s after/);
  left.abort();
  await eventually(() => runsOn(url, PRODUCTS, 0)).toEqual([]);
});

test('a lock beside the keys file is found', async () => {
  await using folder = await makeTempDir();
  const keys = join(folder.path, 'keys.json');
  await writeFile(keys, '{}');
  expect(await locksOf(keys)).toEqual([]);
  await writeFile(`${keys}.lock`, '1');
  expect(await locksOf(keys)).toEqual([`${keys}.lock`]);
});

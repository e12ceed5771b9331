import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { ADMINISTRATOR, WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { expect, inject, onTestFinished, test } from 'vitest';
import { type Mirrors, startMirrors } from '../../testing/mirrors.ts';
import { anEvent } from '../../testing/query-service.ts';
import { startShards } from '../../testing/shards.ts';
import { send } from '../../testing/views.ts';
import { ConsoleDocuments } from './console-documents.ts';
import type { View } from './view.ts';
import { Views } from './views.ts';

const PATIENT = { READ_LAG_MS_MAX: '60000', READ_STALE_MS_MAX: '600000' } as const;

/** The address of a ClickHouse server that can go away. */
async function startGate(target: string) {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let state: 'open' | 'away' | 'silent' = 'open';
  const server = createServer((client) => {
    sockets.add(client.on('error', () => undefined));
    if (state === 'away') client.destroy();
    if (state !== 'open') return;
    const upstream = connect(Number(port), hostname).on('error', () => client.destroy());
    client.pipe(upstream).pipe(client);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const become = (next: typeof state) => {
    state = next;
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  onTestFinished(() => {
    become('away');
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, become };
}

const VIEW = {
  name: 'Paid',
  report: 'series',
  parameters: { event: 'paid', startDate: '2026-01-01', endDate: '2026-01-31', interval: 'none' },
} as const;

/** Saves a view, a dashboard with it, and a link to this. */
async function saveAll(service: Pick<Mirrors, 'app'>) {
  const view = (await send(service, 'POST', '/views', VIEW)).body;
  const tiles = [{ view: view.id, width: 1 }];
  const dashboard = (await send(service, 'POST', '/dashboards', { name: 'Morning', tiles })).body;
  const path = `/dashboards/${dashboard.id}`;
  const { key, id } = (await send(service, 'POST', `${path}/links`, { name: 'Hall' }, 'admin-a')).body;
  expect(key).toMatch(/^vk_/);
  return { view: `/views/${view.id}`, path, tile: `${path}/tiles/${view.id}`, link: `${path}/links/${id}`, key };
}

const PAID = { timestampMs: Date.UTC(2026, 0, 10), event: 'paid' } as const;

async function startTwo(env: Readonly<Record<string, string>> = {}) {
  const service = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2'], {
    ...WEBHOOKS_ACCOUNT,
    ...PATIENT,
    ...env,
  });
  onTestFinished(() => service.stop());
  const event = anEvent(PAID);
  for (const { store, progress } of service.mirrors) {
    await store('a', [event]);
    await progress();
  }
  return service;
}

test('while the server that stores views is away, events are read and views get 503; then everything is there again', async () => {
  const gate = await startGate(inject('clickhouseUrl'));
  const service = await startTwo({ CLICKHOUSE_WEBHOOKS_URL: gate.url });
  const { view, path, tile, link, key } = await saveAll(service);
  const saved = async () => [(await send(service, 'GET', '/views')).body, (await send(service, 'GET', path)).body];
  const before = await saved();
  gate.become('away');
  const requests = [
    ['GET', '/views'],
    ['POST', '/views', VIEW],
    ['PATCH', view, { name: 'Changed' }],
    ['DELETE', view],
    ['GET', path],
    ['PATCH', path, { name: 'Changed' }],
    ['DELETE', path],
    ['GET', tile],
  ] as const;
  for (const [method, url, body] of requests) {
    const response = await send(service, method, url, body);
    expect([method, url, response.status, response.body]).toMatchObject([
      ...[method, url, 503],
      { code: 'store_unavailable', detail: expect.stringContaining('The server that stores saved views cannot be') },
    ]);
  }
  expect((await send(service, 'DELETE', link, undefined, 'admin-a')).status).toBe(503);
  expect((await service.get('/events?event=paid')).body).toMatchObject({ total: 1 });
  gate.become('open');
  expect(await saved()).toEqual(before);
  expect((await send(service, 'GET', tile, undefined, key)).body).toMatchObject({ total: 1 });
});

test('views are the same and links open, whichever server the numbers are read from', async () => {
  const service = await startTwo();
  const { path, tile, key } = await saveAll(service);
  const reads = async () => [
    (await send(service, 'GET', path)).body,
    (await send(service, 'GET', tile, undefined, key)).body,
  ];
  const before = await reads();
  expect(before).toMatchObject([{ name: 'Morning' }, { total: 1 }]);
  for (const gone of service.mirrors) {
    gone.behaviour = 'refuses';
    const [other] = service.mirrors.filter((mirror) => mirror !== gone);
    const queries = other?.queries() ?? 0;
    expect(await reads()).toEqual(before);
    expect(other?.queries()).toBeGreaterThan(queries);
    gone.behaviour = 'answers';
  }
});

test('a tile counts the events of all servers with ranges', async () => {
  const ranges = { a: { first: 0, last: 31 }, b: { first: 32, last: 47 } };
  const service = await startShards(ranges, {}, WEBHOOKS_ACCOUNT);
  onTestFinished(() => service.stop());
  for (const shard of service.shards) {
    await shard.store('a', [anEvent(PAID)]);
    await shard.progress();
  }
  const { tile, key } = await saveAll(service);
  expect((await send(service, 'GET', tile, undefined, key)).body).toMatchObject({ total: 2 });
});

test('on another server there is nothing until the table is copied, and then what was deleted stays so', async () => {
  const service = await startTwo();
  const { a1, a2 } = service;
  const { path, key } = await saveAll(service);
  const second = await saveAll(service);
  await send(service, 'PATCH', path, { name: 'Evening' });
  await send(service, 'DELETE', second.link, undefined, 'admin-a');
  const of = async ({ clickHouse }: typeof a1) => {
    const views = new Views(clickHouse);
    return {
      views: (await views.views.page('a', { limit: 100 })).documents,
      dashboards: (await views.dashboards.page('a', { limit: 100 })).documents,
      links: await Promise.all([key, second.key].map(async (one) => (await views.linkKeys.find(one))?.dashboard)),
    };
  };
  expect(await of(a2)).toEqual({ views: [], dashboards: [], links: [undefined, undefined] });
  const all = await a1.clickHouse.query({ query: 'SELECT * FROM console_documents', format: 'JSONEachRow' });
  await a2.insert('console_documents', await all.json());
  const moved = await of(a2);
  expect(moved).toEqual(await of(a1));
  expect(moved.links).toEqual([path.split('/')[2], undefined]);
  expect(moved.dashboards.map(({ content }) => content.name)).toEqual(['Evening', 'Morning']);
});

test('while the server is silent, no request waits for the others', async () => {
  const gate = await startGate(inject('clickhouseUrl'));
  gate.become('silent');
  const database = { CLICKHOUSE_URL: gate.url, CLICKHOUSE_DATABASE: 'none', ...ADMINISTRATOR };
  // Longer than any test, so that only the time of the statement can end it.
  const options = { application: 'views', requestTimeoutMs: 3_600_000, connectionsMax: 1 };
  const client = createClickHouse(database, options);
  onTestFinished(() => client.close());
  const documents = new ConsoleDocuments<View>(client, 'view', 200);
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => documents.page('a', { limit: 1 })));
  expect(results.map(({ status }) => status)).toEqual(results.map(() => 'rejected'));
});

import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { hashKey } from '@sluice/shared/keys/keys-file';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import { send, shareDashboard, VIEW } from '../../testing/views.ts';
import { ConsoleDocuments } from './console-documents.ts';
import { generateLinkKey, LinkKeys } from './link-keys.ts';
import type { Link } from './view.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { ...WEBHOOKS_ACCOUNT, QUERY_ANONYMOUS_WORKSPACE: 'h' });
});
afterAll(() => query.stop());

test('a link reads its dashboard and the numbers of its tiles, until it is revoked', async () => {
  await query.store('a', [anEvent({ timestampMs: Date.now() - 1_000 })]);
  const { dashboard, tile, link, key } = await shareDashboard(query, 'a');
  expect(key).toMatch(/^vk_[\w-]{43}$/);
  expect(await send(query, 'GET', dashboard, undefined, key)).toMatchObject({ status: 200, body: { name: 'Wall' } });
  expect(await send(query, 'GET', tile, undefined, key)).toMatchObject({ status: 200, body: { total: 1 } });
  const listed = (await send(query, 'GET', `${dashboard}/links`, undefined, 'admin-a')).body;
  expect(listed).toMatchObject({ links: [{ name: 'Screen' }] });
  for (const text of [key, hashKey(key)]) expect(JSON.stringify(listed)).not.toContain(text);
  expect((await send(query, 'DELETE', link, undefined, 'admin-a')).status).toBe(204);
  for (const url of [dashboard, tile]) {
    expect(await send(query, 'GET', url, undefined, key)).toMatchObject({
      status: 401,
      body: { code: 'unauthorized' },
    });
  }
  expect((await send(query, 'DELETE', link, undefined, 'admin-a')).status).toBe(404);
});

test('a link reads and does nothing else', async () => {
  const [own, other, foreign] = [
    await shareDashboard(query, 'b'),
    await shareDashboard(query, 'b'),
    await shareDashboard(query, 'c'),
  ];
  const refused = [
    ...['/events', '/events/series?startDate=2026-01-01', '/events/stream', '/events/export', '/events/values'],
    ...[
      '/users',
      '/users/jane',
      '/organizations',
      '/organizations/acme/users',
      '/pipeline',
      '/webhooks',
      '/alerts',
      '/digests',
    ],
    ...['/views', `/views/${own.view}`, '/dashboards', `${own.dashboard}/links`],
    ...[other.dashboard, other.tile, foreign.dashboard, foreign.tile, `/dashboards/${randomUUID()}`],
    ...['/dashboards/', '/dashboards/x', `${own.dashboard.replace('dashboards', 'views')}`],
  ];
  for (const url of refused) {
    for (const method of ['GET', 'HEAD'] as const) {
      expect([method, url, (await send(query, method, url, undefined, own.key)).status]).toEqual([method, url, 403]);
    }
  }
  const changes: readonly (readonly ['POST' | 'PATCH' | 'DELETE', string, object?])[] = [
    ['POST', '/views', VIEW],
    ['PATCH', `/views/${own.view}`, { name: 'mine' }],
    ['DELETE', `/views/${own.view}`],
    ['POST', '/dashboards', { name: 'mine' }],
    ['PATCH', own.dashboard, { name: 'mine' }],
    ['DELETE', own.dashboard],
    ['POST', `${own.dashboard}/links`, { name: 'more' }],
    ['DELETE', own.link],
    ['POST', '/queries', { sql: 'SELECT 1' }],
    ['POST', '/webhooks', { url: 'https://example.com/' }],
  ];
  for (const [method, url, payload] of changes) {
    const { status, body } = await send(query, method, url, payload, own.key);
    expect([method, url, status, body.code]).toEqual([method, url, 403, 'missing_scope']);
  }
  // A view that is in another dashboard is no tile of this one.
  expect((await send(query, 'GET', `${own.dashboard}/tiles/${other.view}`, undefined, own.key)).status).toBe(404);
  expect((await send(query, 'GET', `${own.dashboard}/tiles/${foreign.view}`, undefined, own.key)).status).toBe(404);
  expect((await send(query, 'GET', `${own.tile}?workspaceId=c`, undefined, own.key)).status).toBe(400);
});

test('a key that no link has is refused, also where no key is needed, and its text is not found by a part of it', async () => {
  const { dashboard, key } = await shareDashboard(query, 'd');
  const { body } = await send(query, 'GET', `${dashboard}/links`, undefined, 'admin-d');
  const [{ id }] = body['links'] as [{ id: string }];
  for (const wrong of [
    generateLinkKey(),
    ...[key.slice(0, -1), `${key}A`, key.toUpperCase(), key.replace('vk_', 'sk_'), key.slice(3), hashKey(key), id],
    ...['vk_', `vk_${'%'.repeat(43)}`, `vk_${'.'.repeat(43)}`],
  ]) {
    for (const url of [dashboard, '/events?limit=0', '/dashboards']) {
      expect([wrong, url, (await send(query, 'GET', url, undefined, wrong)).status]).toEqual([wrong, url, 401]);
    }
  }
  // In the address it is a parameter like any other.
  expect((await send(query, 'GET', `${dashboard}?key=${key}`, undefined, '')).status).toBe(400);
});

test('the links of a deleted dashboard are revoked', async () => {
  const { dashboard, tile, key } = await shareDashboard(query, 'e');
  await send(query, 'DELETE', dashboard, undefined, 'e');
  for (const url of [dashboard, tile]) expect((await send(query, 'GET', url, undefined, key)).status).toBe(401);
});

test('a link has a rate of its own, and is served again when its time is over', async () => {
  const { dashboard, key } = await shareDashboard(query, 'f');
  const statuses = await Promise.all(
    Array.from({ length: 500 }, async () => (await send(query, 'GET', dashboard, undefined, key)).status),
  );
  expect(statuses).toContain(429);
  expect((await send(query, 'GET', dashboard, undefined, 'f')).status).toBe(200);
  await eventually(async () => (await send(query, 'GET', dashboard, undefined, key)).status).toBe(200);
});

test('what is changed of a view or a dashboard is what its link reads', async () => {
  await query.store('b', [anEvent({ event: 'one', timestampMs: Date.now() - 1_000 })]);
  const { view, dashboard, tile, key } = await shareDashboard(query, 'b');
  const read = async (url: string) => await send(query, 'GET', url, undefined, key);
  expect(await read(tile)).toMatchObject({ status: 200, body: { total: 1 } });
  await send(query, 'PATCH', `/views/${view}`, { parameters: { interval: 'none', event: 'two' } }, 'b');
  expect(await read(tile)).toMatchObject({ status: 200, body: { total: 0 } });
  await send(query, 'PATCH', `/views/${view}`, { report: 'values', parameters: { property: 'event' } }, 'b');
  expect(await read(tile)).toMatchObject({ status: 200, body: { results: [{ value: 'one' }] } });
  const other = (await send(query, 'POST', '/views', VIEW, 'b')).body.id;
  await send(query, 'PATCH', dashboard, { name: 'Door', tiles: [{ view: other, width: 2 }] }, 'b');
  expect(await read(dashboard)).toMatchObject({ body: { name: 'Door', tiles: [{ view: other }] } });
  expect((await read(tile)).status).toBe(404);
  expect(await read(`${dashboard}/tiles/${other}`)).toMatchObject({ status: 200, body: { total: 1 } });
});

/** A client of ClickHouse that counts what it is asked, fails on demand, and holds what it read. */
function counting(client: ClickHouseClient) {
  const counts = { queries: 0, isAway: false, held: undefined as Promise<void> | undefined, read: 0 };
  const counted = {
    query: async (...given: Parameters<ClickHouseClient['query']>) => {
      counts.queries += 1;
      if (counts.isAway) throw new Error('connect ECONNREFUSED');
      const result = await client.query(...given);
      counts.read += 1;
      await counts.held;
      return result;
    },
  };
  return { counts, links: new ConsoleDocuments<Link>(counted as unknown as ClickHouseClient, 'link') };
}

test('any number of wrong keys at once costs two reads at most', async () => {
  const { counts, links } = counting(query.clickHouse);
  const keys = new LinkKeys(links);
  const found = await Promise.all(Array.from({ length: 1_000 }, () => keys.find(generateLinkKey())));
  expect(found.filter(Boolean)).toEqual([]);
  expect(counts.queries).toBeLessThanOrEqual(2);
});

test('while ClickHouse is away a link gets 503, and is known again afterwards', async () => {
  const { counts, links } = counting(query.clickHouse);
  const keys = new LinkKeys(links);
  const { key } = await shareDashboard(query, 'g');
  counts.isAway = true;
  await expect(keys.find(key)).rejects.toMatchObject({ code: 'store_unavailable' });
  counts.isAway = false;
  expect(await keys.find(key)).toMatchObject({ workspace: 'g' });
});

test('a link that was revoked while ClickHouse took its time to find it is refused from then on', async () => {
  const { counts, links } = counting(query.clickHouse);
  const keys = new LinkKeys(links);
  const { key, link } = await shareDashboard(query, 'c');
  const { promise, resolve } = Promise.withResolvers<void>();
  counts.held = promise;
  const found = keys.find(key);
  await eventually(() => counts.read).toBe(1);
  await send(query, 'DELETE', link, undefined, 'admin-c');
  keys.forget();
  resolve();
  await found;
  expect(await keys.find(key)).toBeUndefined();
});

test('what another instance creates and revokes holds here too, after seconds', async () => {
  const { dashboard, key, link } = await shareDashboard(query, 'g');
  const keys = new LinkKeys(new ConsoleDocuments<Link>(query.clickHouse, 'link'));
  await eventually(() => keys.find(key)).toMatchObject({ workspace: 'g', dashboard: dashboard.split('/')[2] });
  await send(query, 'DELETE', link, undefined, 'admin-g');
  await eventually(() => keys.find(key)).toBeUndefined();
});

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import Fastify from 'fastify';
import { Registry } from 'prom-client';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { QueryMetrics } from '../metrics.ts';
import { metric } from '../testing/load.ts';
import { send } from '../testing/views.ts';
import { watchClient } from '../testing/watched-client.ts';
import { startWebhooks, type WebhookService } from '../testing/webhooks.ts';
import { RequestSlots } from './request-slots.ts';

// Workspace `a` floods one route after the other, and its statements never end; workspace `b` is served meanwhile.

const BUDGET_BYTES = 24 * 1_024 * 1_024;
/** More than any pool has slots. */
const FLOOD = 12;

let database: TestDatabase;
let query: WebhookService;
/** Holds statements of workspace `a` while it is there. */
let opening: AbortController | undefined;
let held = 0;
/** The rows that ClickHouse has read for statements of requests. */
let rowsRead = 0;

/** A client whose statements of workspace `a` wait until they are let go, and that counts what the engine reads. */
const watched = (client: ClickHouseClient) =>
  watchClient(client, {
    async before({ query_params }) {
      if (!opening || opening.signal.aborted || query_params?.['workspace'] !== 'a') return;
      held += 1;
      await once(opening.signal, 'abort');
      held -= 1;
    },
    after({ rows }) {
      rowsRead += rows;
    },
  });

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
  query = await startWebhooks(database, { QUERY_PENDING_BYTES_MAX: '536870912', WEBHOOK_DELIVERY: 'false' }, watched);
});
afterEach(() => opening?.abort());
afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await database.release();
});

const VIEW = { name: 'Count', report: 'series', parameters: { interval: 'none', range: '1h' } };
const WEBHOOK = { url: 'https://example.com/' };
const ID = '00000000-0000-4000-8000-000000000000';

async function shared(workspace: string) {
  const view = (await send(query, 'POST', '/views', VIEW, workspace)).body.id;
  const given = { name: 'Wall', tiles: [{ view, width: 1 }] };
  const dashboard = `/dashboards/${(await send(query, 'POST', '/dashboards', given, workspace)).body.id}`;
  const { body } = await send(query, 'POST', `${dashboard}/links`, { name: 'Hall' }, `admin-${workspace}`);
  return { dashboard, tile: `${dashboard}/tiles/${view}`, link: `${dashboard}/links/${body.id}`, key: body.key };
}

/** What each operation with a body gets. */
const BODIES: Readonly<Record<string, object>> = {
  'POST /views': VIEW,
  'PATCH /views/{id}': { name: 'Other' },
  'POST /dashboards': { name: 'Other', tiles: [{ view: ID, width: 1 }] },
  'PATCH /dashboards/{id}': { name: 'Other' },
  'POST /dashboards/{id}/links': { name: 'Other' },
  'POST /webhooks': WEBHOOK,
  'PATCH /webhooks/{id}': { batched: true },
};

interface Operation {
  readonly method: 'GET';
  readonly url: string;
  readonly payload: object | undefined;
  readonly key: string;
}

/** Returns the operations whose statements read what is stored beside events, from the document: also those of tomorrow. */
async function operations(): Promise<readonly Operation[]> {
  const { paths } = (await query.app.inject('/openapi.json')).json();
  return Object.entries<Record<string, { tags: string[]; security: { apiKey?: string[] }[]; requestBody?: object }>>(
    paths,
  ).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([name, { tags, security, requestBody }]) => {
      if (!tags.includes('views') && !tags.includes('webhooks')) return [];
      const method = name.toUpperCase() as 'GET';
      const payload = BODIES[`${method} ${path}`];
      expect([method, path, payload !== undefined]).toEqual([method, path, requestBody !== undefined]);
      const scope = security[0]?.apiKey?.[0];
      const url = path.replaceAll(/\{\w+\}/g, ID) + (path.endsWith('/replay') ? '?from=2026-01-01' : '');
      return [{ method, url, payload, key: scope === 'query' ? 'a' : `${scope}-a` }];
    }),
  );
}

test('whatever one workspace floods, links, revocations, views, webhooks and keys of another one are served', async () => {
  const own = await shared('b');
  // Those that delete come first: what the others hold in memory would keep them out.
  const flooded = (await operations()).toSorted((a, b) => a.method.localeCompare(b.method));
  expect(flooded.length).toBeGreaterThan(20);
  opening = new AbortController();
  const floods: Promise<{ status: number }>[] = [];
  for (const { method, url, payload, key } of flooded) {
    floods.push(...Array.from({ length: FLOOD }, () => send(query, method, url, payload, key)));
  }
  const waiting = (pool: string) => metric(query, `sluice_queries{pool="${pool}",state="waiting"}`);
  for (const pool of ['documents', 'revocations', 'webhooks']) {
    await eventually(() => waiting(pool)).toBeGreaterThan(0);
  }
  // A revocation, two for documents and two of webhooks, where the second may wait for the creation before it.
  await eventually(() => held).toBeGreaterThanOrEqual(3);
  expect(held).toBeLessThanOrEqual(5);
  const another = await send(query, 'POST', `${own.dashboard}/links`, { name: 'Other' }, 'admin-b');
  for (const [method, url, key, status] of [
    ['GET', own.tile, own.key, 200],
    ['GET', own.dashboard, own.key, 200],
    ['GET', '/views', 'b', 200],
    ['GET', '/dashboards', 'b', 200],
    ['GET', '/webhooks', 'webhooks-b', 200],
    ['GET', '/keys', 'admin-b', 200],
    ['GET', '/pipeline/history', 'b', 200],
    ['DELETE', `${own.dashboard}/links/${another.body.id}`, 'admin-b', 204],
    ['DELETE', own.link, 'admin-b', 204],
    ['GET', own.tile, own.key, 401],
  ] as const) {
    expect([method, url, (await send(query, method, url, undefined, key)).status]).toEqual([method, url, status]);
  }
  expect(held).toBeLessThanOrEqual(5);
  opening.abort();
  for (const { status } of await Promise.all(floods)) expect([200, 201, 204, 400, 404, 503]).toContain(status);
});

test('a list reserves its memory before it reads, and one beyond the share of its key gets 503', async () => {
  const env = { QUERY_PENDING_BYTES_MAX: String(BUDGET_BYTES), WEBHOOK_DELIVERY: 'false' };
  await using small = await startWebhooks(database, env, watched);
  opening = new AbortController();
  const headers = { authorization: 'Bearer a' };
  const lists = Array.from({ length: 2 }, () => small.app.inject({ url: '/views', headers }));
  const refused = await Promise.race(lists);
  expect([refused.statusCode, refused.json().code, refused.headers['retry-after']]).toEqual([503, 'overloaded', '2']);
  await eventually(() => held).toBe(1);
  const reserved = await metric(small, 'sluice_query_reserved_bytes');
  expect(reserved).toBeGreaterThan(6 * 1_024 * 1_024);
  expect(reserved).toBeLessThanOrEqual(BUDGET_BYTES / 2);
  expect((await send(small, 'GET', '/views', undefined, 'b')).status).toBe(200);
  opening.abort();
  expect((await Promise.all(lists)).map(({ statusCode }) => statusCode).sort()).toEqual([200, 503]);
  await eventually(() => metric(small, 'sluice_query_reserved_bytes')).toBe(0);
});

test.each([
  ['GET', `/views/${ID}`, 'a'],
  // What fails when its client has left has no response to give its slot back.
  ['POST', `/webhooks/${ID}/test`, 'webhooks-a'],
])('a client that leaves leaves no slot taken: %s %s', async (method, path, key) => {
  opening = new AbortController();
  const { port } = await listen();
  const controller = new AbortController();
  const requests = Array.from({ length: FLOOD }, () =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}` },
      signal: controller.signal,
    }).catch(() => undefined),
  );
  await eventually(() => metric(query, 'sluice_queries{pool="documents",state="waiting"}')).toBe(FLOOD - 2);
  controller.abort();
  await Promise.all(requests);
  await eventually(() => metric(query, 'sluice_queries{pool="documents",state="waiting"}')).toBe(0);
  // What they have begun goes on until ClickHouse is done with it.
  expect(await metric(query, 'sluice_queries{pool="documents",state="running"}')).toBe(2);
  opening.abort();
  await eventually(() => metric(query, 'sluice_queries{pool="documents",state="running"}')).toBe(0);
});

async function listen(): Promise<{ readonly port: number }> {
  if (!query.app.server.listening) await query.app.listen({ host: '127.0.0.1', port: 0 });
  return query.app.server.address() as { port: number };
}

test('a route that nothing admits is refused when it is registered', () => {
  const slots = new RequestSlots(query.config, new QueryMetrics(new Registry()));
  const app = Fastify();
  slots.register(app);
  expect(() => app.get('/new', () => 'x')).toThrow('nothing admits GET /new');
});

test('a list has pages by number and by size, and each record once', async () => {
  const documents = Array.from({ length: 50 }, (_, index) => ({
    ...{ kind: 'view', workspace_id: 'c', id: randomUUID(), created_at: 1_000 + Math.floor(index / 7) },
    ...{ is_deleted: false, content: JSON.stringify({ ...VIEW, name: 'x'.repeat(30_000) }) },
  }));
  await query.insert('console_documents', documents);
  for (const given of ['', 'limit=7']) {
    const found: string[] = [];
    let cursor = '';
    do {
      const { status, body } = await send(query, 'GET', `/views?${given}${cursor}`, undefined, 'c');
      expect(status).toBe(200);
      const views = body['views'] as { id: string }[];
      // A mebibyte of documents of 30 kB, and the one that goes beyond it.
      expect(views.length).toBeLessThanOrEqual(given === '' ? 35 : 7);
      found.push(...views.map(({ id }) => id));
      cursor = body['nextCursor'] === null ? '' : `&cursor=${body['nextCursor']}`;
    } while (cursor !== '');
    const order = documents.map(({ id, created_at }) => `${created_at} ${id}`).sort();
    expect(found).toEqual(order.map((one) => one.split(' ')[1]));
  }
  const { body } = await send(query, 'GET', '/views?limit=1', undefined, 'c');
  expect((await send(query, 'GET', `/views?cursor=${body['nextCursor']}`, undefined, 'b')).paths).toEqual(['cursor']);
  expect((await send(query, 'GET', `/dashboards?cursor=${body['nextCursor']}`, undefined, 'c')).status).toBe(400);
});

test('webhooks have pages', async () => {
  for (let count = 0; count < 3; count += 1) await send(query, 'POST', '/webhooks', WEBHOOK, 'webhooks-d');
  const first = (await send(query, 'GET', '/webhooks?limit=2', undefined, 'webhooks-d')).body;
  expect(first['webhooks']).toHaveLength(2);
  const next = `/webhooks?limit=2&cursor=${first['nextCursor']}`;
  const last = (await send(query, 'GET', next, undefined, 'webhooks-d')).body;
  expect([last['webhooks'], last['nextCursor']]).toEqual([[expect.anything()], null]);
});

test('what is read does not grow with what other workspaces have', async () => {
  const own = await shared('e');
  const { id } = (await send(query, 'POST', '/webhooks', WEBHOOK, 'webhooks-e')).body;
  const requests = [
    ['GET', own.tile, own.key],
    ['GET', own.dashboard, own.key],
    ['GET', '/views', 'e'],
    ['POST', '/views', 'e', VIEW],
    ['GET', `${own.dashboard}/links`, 'admin-e'],
    ['GET', '/webhooks', 'webhooks-e'],
    ['POST', `/webhooks/${id}/resume`, 'webhooks-e'],
  ] as const;
  const costs = async () => {
    const found: number[] = [];
    for (const [method, url, key, payload] of requests) {
      const before = rowsRead;
      expect((await send(query, method, url, payload, key)).status).toBeLessThan(300);
      found.push(rowsRead - before);
    }
    return found;
  };
  await costs();
  for (const statement of OTHERS) await query.clickHouse.command({ query: statement });
  const large = await costs();
  // Each statement reads the granules that its own rows are in.
  for (const [index, rows] of large.entries())
    expect([requests[index], rows < ROWS / 4]).toEqual([requests[index], true]);
});

/** Rows of other workspaces, in each table. */
const ROWS = 400_000;

const OTHERS = [
  `INSERT INTO console_documents (kind, workspace_id, id, content, created_at, is_deleted)
SELECT ['view', 'dashboard', 'link'][1 + number % 3], toString(number), generateUUIDv4(number),
  concat('{"dashboard":"x","hash":"', hex(SHA256(toString(number))), '"}'), now64(3), false
FROM numbers(${ROWS})`,
  `INSERT INTO webhooks (workspace_id, id, created_at) SELECT toString(number), generateUUIDv4(number), now64(3) FROM numbers(${ROWS})`,
  `INSERT INTO webhook_states (webhook_id, state) SELECT generateUUIDv4(number), 'paused' FROM numbers(${ROWS})`,
  `INSERT INTO webhook_positions (webhook_id, epoch, position) SELECT generateUUIDv4(number), 1, 'x' FROM numbers(${ROWS})`,
  `INSERT INTO webhook_leases (webhook_id, epoch, holder) SELECT generateUUIDv4(number), 1, 'x' FROM numbers(${ROWS})`,
];

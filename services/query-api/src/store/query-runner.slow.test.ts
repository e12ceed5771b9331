import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { MIGRATE_ACCOUNT, QUERY_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { loadConfig } from '@sluice/shared/config';
import { eventually } from '@sluice/shared/testing/eventually';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { buildApp } from '../app.ts';
import { configSchema, type QueryConfig } from '../config.ts';
import { QueryMetrics } from '../metrics.ts';
import { FILTER_FIELDS } from '../records/events/event-columns.ts';
import { eventParameters, parseEventsRequest } from '../records/events/events-parameters.ts';
import { pageQuery } from '../records/events/events-query.ts';
import { ALL_VISIBLE } from '../testing/all-visible.ts';
import { slowly, storeMany } from '../testing/load.ts';
import { AMPLE_BUDGETS, anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { type ClickHouseReader, HttpClickHouseReader, type ReadRequest } from './clickhouse-reader.ts';
import { QueryRunner } from './query-runner.ts';
import { querySettings } from './query-settings.ts';
import { createReadiness, SchemaComponent } from './schema.ts';
import { OneStore } from './stores.ts';
import { LOCAL_TABLES } from './tables.ts';

let query: QueryService;

const ROWS = 400_000;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  await storeMany(query, 'a', ROWS);
  await mergeParts(query.clickHouse, 'events');
});
afterAll(() => query.stop());

/** Starts a service that reads the same database with other settings, or another ClickHouse. */
async function service(env: Readonly<Record<string, string>>, wrap = (reader: ClickHouseReader) => reader) {
  const [{ database } = { database: '' }] = await (
    await query.clickHouse.query({ query: 'SELECT currentDatabase() AS database', format: 'JSONEachRow' })
  ).json<{ database: string }>();
  const config = loadConfig(configSchema, {
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: database,
    ...QUERY_ACCOUNT,
    // No writer creates the tables for it.
    ...MIGRATE_ACCOUNT,
    QUERY_ANONYMOUS_WORKSPACE: 'a',
    ...AMPLE_BUDGETS,
    ...env,
  });
  const logger = createLogger('query-api', 'silent');
  const options = { application: 'query-api-test', requestTimeoutMs: 600_000, connectionsMax: 8 };
  const clickHouse = createClickHouse(config, options);
  const reader = wrap(new HttpClickHouseReader(config, { connectionsMax: 8, settings: querySettings(config) }));
  const unused = async () => undefined;
  const keys = { name: 'none', start: unused, stop: unused, loaded: true, find: () => undefined };
  const readiness = createReadiness(clickHouse, config);
  const app = buildApp(config, { source: { reader }, keys, logger, registry: new Registry(), readiness });
  const schema = new SchemaComponent(clickHouse, config, logger);
  await app.ready();
  return {
    app,
    schema,
    async stop() {
      await app.close();
      reader.close();
      await schema.stop();
      await clickHouse.close();
    },
  };
}

function expectNoInternals(body: string): void {
  expect(body).not.toMatch(/clickhouse|select|127\.0\.0\.1|events\b.*where|DB::|code: \d|econn|stack/i);
}

test.each(['the newest page', 'the oldest page', 'the page after a cursor'] as const)(
  '%s is read in the order of the table, and few rows of it',
  async (which) => {
    const { body } = await query.get('/events?limit=100&total=none');
    const parameters = {
      'the newest page': {},
      'the oldest page': { orderByDirection: ['ASC'] },
      'the page after a cursor': { cursor: [String(body.nextCursor)] },
    }[which];
    const { sql, params } = pageQuery(LOCAL_TABLES, parseEventsRequest(parameters, 'a'), undefined);
    const query_params = { ...params, workspace: 'a' };
    const plan = await query.clickHouse.query({
      query: `EXPLAIN PIPELINE ${sql}`,
      query_params,
      format: 'TabSeparatedRaw',
    });
    expect(await plan.text()).toMatch(which === 'the oldest page' ? /InOrder/ : /InReverseOrder/);
    const result = await query.clickHouse.query({ query: sql, query_params, format: 'JSON' });
    const { statistics } = await result.json<unknown>();
    expect(statistics?.rows_read).toBeLessThan(ROWS / 10);
  },
);

test('no parameter of GET /events reaches the text of a query', async () => {
  const hostile = "'; DROP TABLE events; --";
  const texts = FILTER_FIELDS.filter((field) => field !== 'uuid');
  const given = Object.fromEntries([...texts, `properties.${hostile}`].map((name) => [name, [hostile]]));
  const { sql } = pageQuery(LOCAL_TABLES, parseEventsRequest(given, hostile), undefined);
  expect(sql).not.toContain('DROP');
  expect(Object.keys(eventParameters)).toEqual(expect.arrayContaining([...texts]));
});

test('a count that takes longer than it may is null, and the page still comes', async () => {
  const isCount = ({ queryId }: ReadRequest) => queryId.includes('/events_count/');
  const hurried = await service({ COUNT_TIMEOUT_MS: '10' }, (reader) => slowly(reader, isCount));
  try {
    const counting = await hurried.app.inject({ url: '/events?limit=0&properties.n=1' });
    expect(counting.json()).toMatchObject({ total: null, results: [] });
    const page = await hurried.app.inject({ url: '/events?limit=3&userId=7&properties.n.x=1' });
    expect(page.json()).toMatchObject({ total: expect.toBeOneOf([null, 0]), results: [], nextCursor: null });
    expect((await hurried.app.inject({ url: '/metrics' })).body).toMatch(
      /sluice_query_duration_seconds_count\{kind="events_count",outcome="too_expensive"\} [1-9]/,
    );
  } finally {
    await hurried.stop();
  }
});

const storeOf = (reader: ClickHouseReader) =>
  new OneStore({ name: '', reader, tables: LOCAL_TABLES, visibility: ALL_VISIBLE });

test('a query cannot write', async () => {
  const reader = new HttpClickHouseReader(query.config, { connectionsMax: 2, settings: querySettings(query.config) });
  try {
    const runner = new QueryRunner(storeOf(reader), query.config, new QueryMetrics(new Registry()));
    const run = (sql: string) =>
      runner.all({ kind: 'events_count', workspace: 'a', statement: () => ({ sql, params: {} }) });
    for (const sql of [
      'CREATE TABLE written (n UInt8) ENGINE = Memory',
      "INSERT INTO events (workspace_id, event) SELECT 'written', 'e'",
      'ALTER TABLE events DELETE WHERE 1',
    ]) {
      await expect(run(sql)).rejects.toThrow();
    }
    const sql = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'written'";
    expect(await run(sql)).toEqual([[0]]);
    const events = "SELECT countIf(workspace_id = 'written'), count() >= 1 FROM events";
    expect(await run(events)).toEqual([[0, 1]]);
  } finally {
    reader.close();
  }
});

test('a query that cannot begin gives its slot back', async () => {
  const config: QueryConfig = { ...query.config, QUERY_CONNECTIONS_MAX: 1 };
  const reader = new HttpClickHouseReader(config, { connectionsMax: 2, settings: querySettings(config) });
  try {
    const runner = new QueryRunner(storeOf(reader), config, new QueryMetrics(new Registry()));
    const one = { kind: 'events_count', workspace: 'a', statement: () => ({ sql: 'SELECT 1', params: {} }) } as const;
    // A deadline of half a millisecond cannot be set.
    await expect(runner.all({ ...one, timeoutMs: 0.5 })).rejects.toMatchObject({ code: 'internal' });
    expect(await runner.all(one)).toEqual([[1]]);
  } finally {
    reader.close();
  }
});

/** Other values than the defaults, each another one, with the setting that it becomes. */
const BUDGET = {
  QUERY_MEMORY_BYTES_MAX: ['max_memory_usage', 123_456_789],
  QUERY_RESULT_BYTES_MAX: ['max_result_bytes', 23_456_789],
  QUERY_BYTES_READ_MAX: ['max_bytes_to_read', 3_456_789],
  QUERY_ROWS_READ_MAX: ['max_rows_to_read', 456_789],
  QUERY_THREADS_MAX: ['max_threads', 3],
} as const;

test('the value of each variable reaches the statements of pages and reports; an export may read and return everything', async () => {
  const values = Object.fromEntries(Object.entries(BUDGET).map(([variable, [, value]]) => [variable, value]));
  const config: QueryConfig = { ...query.config, ...values, QUERY_TIMEOUT_MS: 56_789 };
  const reader = new HttpClickHouseReader(config, { connectionsMax: 2, settings: querySettings(config) });
  const names = Object.values(BUDGET).map(([setting]) => setting);
  const sql = `SELECT ${[...names, 'max_execution_time'].map((name) => `toFloat64(getSetting('${name}'))`).join(', ')}`;
  try {
    const runner = new QueryRunner(storeOf(reader), config, new QueryMetrics(new Registry()));
    const read = async (pool: 'pages' | 'reports' | 'exports') => {
      const one = { kind: 'events_count', workspace: 'a', pool, statement: () => ({ sql, params: {} }) } as const;
      const [row = []] = await runner.all(one);
      return {
        settings: Object.fromEntries(names.map((name, index) => [name, row[index]])),
        seconds: Number(row.at(-1)),
      };
    };
    const given = Object.fromEntries(Object.values(BUDGET));
    for (const pool of ['pages', 'reports'] as const) {
      const { settings, seconds } = await read(pool);
      expect([pool, settings]).toEqual([pool, given]);
      expect(seconds).toBeLessThanOrEqual(56.789);
      expect(seconds).toBeGreaterThan(0);
    }
    const unlimited = { max_result_bytes: 0, max_bytes_to_read: 0, max_rows_to_read: 0 };
    expect((await read('exports')).settings).toEqual({ ...given, ...unlimited });
  } finally {
    reader.close();
  }
});

test('a query over its time or memory is refused as too expensive, and reveals nothing more', async () => {
  const poor = await service({ QUERY_TIMEOUT_MS: '100', QUERY_MEMORY_BYTES_MAX: String(16 * 1_024 * 1_024) });
  try {
    const url = '/events?total=none&orderByField=userId&limit=1000&offset=300000';
    const response = await poor.app.inject({ url });
    expect([response.statusCode, response.json().code]).toEqual([400, 'query_too_expensive']);
    expectNoInternals(response.body);
  } finally {
    await poor.stop();
  }
});

test('the budget of bytes counts what a page reads, not the rows that its order or an index skips', async () => {
  const poor = await service({ QUERY_BYTES_READ_MAX: String(6 * 1_024 * 1_024) });
  try {
    for (const cheap of [
      '',
      '&orderByDirection=ASC',
      '&userId=nobody',
      `&uuid=${randomUUID()}`,
      '&properties.n=none',
    ]) {
      const response = await poor.app.inject({ url: `/events?limit=100&total=none${cheap}` });
      expect(response.statusCode, cheap).toBe(200);
    }
    // This order has no index, so ClickHouse reads more than 6 MiB.
    const sorted = await poor.app.inject({ url: '/events?limit=1&total=none&orderByField=userId' });
    expect([sorted.statusCode, sorted.json().code]).toEqual([400, 'query_too_expensive']);
    expectNoInternals(sorted.body);
    const counted = await poor.app.inject({
      url: '/events?limit=1&properties.n[ne]=none&userId[ne]=none&event[ne]=none',
    });
    expect(counted.json()).toMatchObject({ total: null, results: [{ properties: { n: ROWS - 1 } }] });
  } finally {
    await poor.stop();
  }
});

test('the budget of rows refuses a query before it reads any, unless dates or an index leave few', async () => {
  const poor = await service({ QUERY_ROWS_READ_MAX: String(ROWS / 10) });
  try {
    for (const narrow of ['&startDate=2026-03-01T00:00:00Z&endDate=2026-03-01T01:00:00Z', '&userId=nobody']) {
      expect((await poor.app.inject({ url: `/events?limit=1${narrow}` })).json().total, narrow).toEqual(
        expect.any(Number),
      );
    }
    const wide = await poor.app.inject({ url: '/events?limit=1&total=none' });
    expect([wide.statusCode, wide.json().code]).toEqual([400, 'query_too_expensive']);
    expectNoInternals(wide.body);
    expect((await poor.app.inject({ url: '/events?limit=0&userId[contains]=u' })).json().total).toBeNull();
  } finally {
    await poor.stop();
  }
});

test('a page of many mebibytes is complete', async () => {
  const properties = JSON.stringify({ text: 'ä"\\'.repeat(40_000) });
  const events = Array.from({ length: 40 }, (_, index) =>
    anEvent({ timestampMs: Date.UTC(2026, 0, 1) + index, properties }),
  );
  await query.store('f', events);
  const { status, body } = await query.get('/events?orderByDirection=ASC&limit=39', 'f');
  expect(status).toBe(200);
  expect(body.total).toBe(40);
  expect(body.results.map(({ uuid }) => uuid)).toEqual(events.slice(0, 39).map(({ uuid }) => uuid));
  expect(body.results.at(-1)?.['properties']).toEqual(JSON.parse(properties));
  const rest = await query.get(`/events?orderByDirection=ASC&cursor=${body.nextCursor}`, 'f');
  expect(rest.body.results.map(({ uuid }) => uuid)).toEqual([events.at(-1)?.uuid]);
});

test('without ClickHouse the service is alive, says what is missing, and works once ClickHouse is there', async () => {
  const front = createServer();
  const port = await listen(front);
  await close(front);
  const waiting = await service({
    CLICKHOUSE_URL: `http://127.0.0.1:${port}`,
    CLICKHOUSE_DATABASE: `test_later_${port}`,
  });
  try {
    await waiting.schema.start();
    expect((await waiting.app.inject({ url: '/livez' })).statusCode).toBe(200);
    const ready = await waiting.app.inject({ url: '/readyz' });
    expect([ready.statusCode, ready.json().missing]).toEqual([503, ['ClickHouse cannot be reached']]);
    for (const url of ['/events', '/events?limit=0', '/users', '/users/x', '/organizations/x']) {
      const response = await waiting.app.inject({ url });
      expect([response.statusCode, response.json().code], url).toEqual([503, 'store_unavailable']);
      expect(response.headers['retry-after']).toMatch(/^\d+$/);
      expectNoInternals(response.body);
    }
    const { body } = await waiting.app.inject({ url: '/metrics' });
    expect(body).toMatch(/sluice_query_duration_seconds_count\{kind="identity_default",outcome="unavailable"\} [1-9]/);
    expect(body).not.toMatch(/^sluice_query_.*outcome="failed"/m);
    const proxy = createServer((request, response) => forward(request, response));
    await listen(proxy, port);
    await eventually(async () => (await waiting.app.inject({ url: '/readyz' })).statusCode).toBe(200);
    expect((await waiting.app.inject({ url: '/events' })).json()).toMatchObject({ total: 0, results: [] });
    await query.clickHouse.command({ query: `DROP DATABASE test_later_${port}` });
    expect((await waiting.app.inject({ url: '/events' })).statusCode).toBe(503);
    await wait(1_100);
    const again = await waiting.app.inject({ url: '/readyz' });
    expect([again.statusCode, again.json().missing]).toEqual([503, ['the tables do not exist yet']]);
    await close(proxy);
  } finally {
    await waiting.stop();
  }
});

async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

/** Forwards a request to the real ClickHouse. */
function forward(request: IncomingMessage, response: import('node:http').ServerResponse): void {
  const { method, headers, url } = request;
  fetch(new URL(url ?? '/', inject('clickhouseUrl')), {
    method: method ?? 'GET',
    headers: { authorization: headers.authorization ?? '' },
    ...(method === 'POST' && { body: request as unknown as ReadableStream, duplex: 'half' as const }),
  }).then(
    async (forwarded) => {
      response.writeHead(
        forwarded.status,
        Object.fromEntries([...forwarded.headers].filter(([name]) => name.startsWith('x-'))),
      );
      response.end(Buffer.from(await forwarded.arrayBuffer()));
    },
    () => response.destroy(),
  );
}

import type { ClientRequest } from 'node:http';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import {
  metric,
  openRequest,
  outOfTime,
  queriesRunning,
  SLOW_EVENTS,
  SLOW_FILTER,
  slowly,
  storeMany,
} from '../../testing/load.ts';
import { type QueryService, startQuery } from '../../testing/query-service.ts';

/** Filters that no event matches. */
const NONE = `${SLOW_FILTER}&properties.n[lt]=-1`;
const SLOW_MENUS = ['names?', 'properties?', 'values?property=userId&'].map((menu) => `/events/${menu}${NONE}`);
const RUNNING = 'sluice_queries{pool="reports",state="running"}';

let query: QueryService;
let hurried: QueryService;
const requests: ClientRequest[] = [];

beforeAll(async () => {
  const narrow = { REPORT_CONNECTIONS_MAX: '1', REPORT_CONCURRENCY_PER_WORKSPACE: '1' };
  query = await startQuery(inject('clickhouseUrl'), { ...narrow, QUERY_TIMEOUT_MS: '600000' }, slowly);
  hurried = await startQuery(inject('clickhouseUrl'), {}, outOfTime);
  await query.app.listen({ host: '127.0.0.1', port: 0 });
  for (const service of [query, hurried]) await storeMany(service, 'a', SLOW_EVENTS);
});
afterAll(async () => {
  await query.stop();
  await hurried.stop();
});

afterEach(async () => {
  for (const request of requests.splice(0)) request.destroy();
  await eventually(() => queriesRunning(query), { interval: 20 }).toBe(0);
});

test.each(SLOW_MENUS)('%s ends with its client, in ClickHouse too', async (path) => {
  const request = openRequest(query, path);
  requests.push(request);
  // What it asks before is a query of ClickHouse, too.
  await eventually(() => metric(query, RUNNING), { interval: 5 }).toBe(1);
  await eventually(() => queriesRunning(query), { interval: 5 }).toBe(1);
  request.destroy();
  await eventually(() => queriesRunning(query), { interval: 20 }).toBe(0);
  await eventually(() => metric(query, RUNNING)).toBe(0);
});

test('menus that fill the slots of reports keep no page waiting', async () => {
  for (const path of SLOW_MENUS) requests.push(openRequest(query, path));
  await eventually(() => metric(query, RUNNING.replace('running', 'waiting'))).toBe(2);
  const { status, body } = await query.get('/events?limit=10&total=none');
  expect([status, body.results.length]).toEqual([200, 10]);
  expect(await metric(query, RUNNING)).toBe(1);
});

test.each(SLOW_MENUS)('%s that takes too long is refused as too expensive', async (path) => {
  const { status, body } = await hurried.get(path);
  expect([status, body.code]).toEqual([400, 'query_too_expensive']);
  await eventually(() => queriesRunning(hurried), { interval: 20 }).toBe(0);
});

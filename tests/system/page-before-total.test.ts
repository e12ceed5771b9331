import type { AddressInfo } from 'node:net';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createQueryClient, type PageBeforeTotal, type QueryClient } from '../../packages/client/src/query.ts';
import { isSlow, queriesRunning, SLOW_EVENTS, slowly, storeMany } from '../../services/query-api/src/testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../../services/query-api/src/testing/query-service.ts';

let service: QueryService;
let query: QueryClient;

beforeAll(async () => {
  const isSlowCount = (request: Parameters<typeof isSlow>[0]) =>
    isSlow(request) && request.queryId.includes('/events_count/');
  service = await startQuery(inject('clickhouseUrl'), {}, (reader) => slowly(reader, isSlowCount));
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(service, 'a', SLOW_EVENTS);
  // Texts that look like the end of the page.
  const properties = JSON.stringify({ nextCursor: null, text: '"nextCursor":"x"', last: { nextCursor: 'x' } });
  await service.store(
    'b',
    Array.from({ length: 2_000 }, (_, index) => anEvent({ timestampMs: Date.UTC(2026, 0, 1) + index, properties })),
  );
  const { port } = service.app.server.address() as AddressInfo;
  query = createQueryClient({ url: `http://127.0.0.1:${port}`, key: 'a' });
});
afterAll(() => service?.stop());

test('the client has the page before its total is counted', async () => {
  const pages: PageBeforeTotal[] = [];
  const whole = query.eventPage({ limit: 3, 'userId[ne]': 'slow' }, (page) => pages.push(page));
  await eventually(() => queriesRunning(service)).toBe(1);
  await eventually(() => pages).toHaveLength(1);
  expect(pages[0]?.results).toHaveLength(3);
  expect(pages[0]).not.toHaveProperty('total');
  expect(await queriesRunning(service)).toBe(1);
  await service.clickHouse.command({
    query: `KILL QUERY WHERE query_id LIKE 'query-api/events_count/%' AND current_database = currentDatabase() ASYNC`,
  });
  expect(await whole).toEqual({ ...pages[0], total: null });
  expect(pages).toHaveLength(1);
});

test.each([1_000, 10])('a page of %d events is given once, and then returned with its total', async (limit) => {
  const { port } = service.app.server.address() as AddressInfo;
  const other = createQueryClient({ url: `http://127.0.0.1:${port}`, key: 'b' });
  const pages: PageBeforeTotal[] = [];
  const page = await other.eventPage({ limit }, (before) => pages.push(before));
  expect(page).toMatchObject({ limit, total: 2_000 });
  expect(page.results).toHaveLength(limit);
  expect(pages).toHaveLength(1);
  expect(page).toMatchObject(pages[0] ?? {});
  expect(page).toEqual(await other.eventPage({ limit }));
});

import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { MeasuredRunner } from '../../testing/measured-runner.ts';
import { anEvent, aRegister, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { inOrder } from '../../testing/reference.ts';
import type { EventOrder } from './event-order.ts';
import { PageReader } from './events-page.ts';
import { parseEventsRequest } from './events-parameters.ts';
import { type Density, PageDensities } from './page-windows.ts';

let query: QueryService;
let runner: MeasuredRunner;

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 2, 1, 12);

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  runner = new MeasuredRunner(query.clickHouse, query.config);
  for (const [id, plan] of [
    ['ada', '["team","pro"]'],
    ['bob', '"free"'],
    ['acme', '"pro"'],
  ]) {
    const register = aRegister(1, 'set', String(plan));
    const kind = id === 'acme' ? 'organization' : 'user';
    await query.insert('entity_properties', [{ workspace_id: 'a', kind, id, property: 'plan', register }]);
  }
});
afterAll(() => query.stop());

beforeEach(async () => {
  runner.beforeQuery = async () => undefined;
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
});

/** Times of three years, many of them equal, or where the smallest windows end, ten minutes apart. */
const time = fc.oneof(
  { weight: 3, arbitrary: fc.nat(4).map((windows) => NOW_MS - windows * 600_000) },
  { weight: 1, arbitrary: fc.constantFrom(NOW_MS - 1, NOW_MS - 600_001, NOW_MS - 40 * DAY_MS) },
  { weight: 1, arbitrary: fc.nat(1_000).map((days) => NOW_MS - days * DAY_MS) },
);

const anyEvent: fc.Arbitrary<TestEvent> = fc
  .record({
    uuid: fc.uuid(),
    timestampMs: time,
    event: fc.constantFrom('opened', 'closed'),
    userId: fc.constantFrom('', 'ada', 'bob'),
    groupId: fc.constantFrom('', 'acme', 'bolt'),
    properties: fc.constantFrom('{}', '{"plan":"pro"}'),
  })
  .map(anEvent);

/** What may be known of a list, true or not. The smallest windows are the likeliest. */
const anyDensity: fc.Arbitrary<Density> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({}) },
  {
    weight: 4,
    arbitrary: fc.record({
      newestMs: time,
      oldestMs: time,
      msPerEvent: fc.constantFrom(0, 0, 0, 60_000, DAY_MS, Number.POSITIVE_INFINITY),
    }),
  },
);

const FILTERS: Readonly<Record<string, (event: TestEvent) => boolean>> = {
  '': () => true,
  'event=opened': ({ event }) => event === 'opened',
  'event[ne]=opened': ({ event }) => event !== 'opened',
  'userId=ada': ({ userId }) => userId === 'ada',
  'properties.plan=pro': ({ properties }) => properties.includes('pro'),
  'organization.properties.plan=pro': ({ groupId }) => groupId === 'acme',
  'user.properties.plan=pro': ({ userId }) => userId === 'ada',
  'user.properties.plan[ne]=pro': ({ userId }) => userId !== 'ada',
};

interface List {
  readonly filter: string;
  readonly order: EventOrder;
  readonly range: { readonly startDate?: number | undefined; readonly endDate?: number | undefined };
}

const anyList: fc.Arbitrary<List> = fc.record({
  filter: fc.constantFrom(...Object.keys(FILTERS)),
  order: fc.record({ field: fc.constant('timestamp' as const), direction: fc.constantFrom('ASC', 'DESC') }),
  range: fc.record({ startDate: time, endDate: time }, { requiredKeys: [] }),
});

function parse({ filter, order, range }: List, page: Readonly<Record<string, number>>) {
  const [name, value] = filter.split('=');
  return parseEventsRequest(
    {
      ...(value && { [name as string]: [value] }),
      ...Object.fromEntries(Object.entries(range).map(([key, ms]) => [key, [new Date(ms as number).toISOString()]])),
      orderByDirection: [order.direction],
      ...Object.fromEntries(Object.entries(page).map(([key, number]) => [key, [String(number)]])),
    },
    'a',
  );
}

function expected({ filter, order, range }: List, events: readonly TestEvent[]): string[] {
  const { startDate = 0, endDate = Number.POSITIVE_INFINITY } = range;
  const found = events.filter((event) => FILTERS[filter]?.(event) && event.timestampMs >= startDate);
  return inOrder(
    found.filter(({ timestampMs }) => timestampMs <= endDate),
    order,
  ).map(({ uuid }) => uuid);
}

async function rowsOf(reader: PageReader, request: ReturnType<typeof parse>) {
  const found: { uuid: string; timestampMs: number }[] = [];
  for await (const batch of reader.read(request, { workspace: 'a' })) {
    for (const row of batch as readonly string[][]) {
      found.push({ uuid: String(row[0]), timestampMs: Date.parse(`${row[10]}Z`) });
    }
  }
  return found;
}

/** Reads all pages of a list by their cursors. */
async function walk(reader: PageReader, list: List, limit: number): Promise<string[]> {
  const uuids: string[] = [];
  let after: ReturnType<typeof parse>['after'];
  for (;;) {
    const rows = await rowsOf(reader, { ...parse(list, { limit }), after });
    uuids.push(...rows.slice(0, limit).map(({ uuid }) => uuid));
    const last = rows[limit - 1];
    if (rows.length <= limit || !last) return uuids;
    after = { value: last.timestampMs, uuid: last.uuid, timestampMs: last.timestampMs };
  }
}

const someEvents = fc.uniqueArray(anyEvent, { minLength: 1, maxLength: 60, selector: ({ uuid }) => uuid });

test('pages are the same wherever their windows end, whatever is believed of the list', async () => {
  let slices = 0;
  let pages = 0;
  await fc.assert(
    fc.asyncProperty(
      someEvents,
      fc.array(
        fc.record({
          list: anyList,
          known: anyDensity,
          limit: fc.integer({ min: 1, max: 30 }),
          offset: fc.oneof(fc.constant(0), fc.nat(40)),
        }),
        {
          minLength: 8,
          maxLength: 8,
        },
      ),
      async (events, requests) => {
        await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
        for (let from = 0; from < events.length; from += 20) await query.store('a', events.slice(from, from + 20));
        for (const { list, known, limit, offset } of requests) {
          const { startDate = 0, endDate = NOW_MS } = list.range;
          if (startDate > endDate) continue;
          const request = parse(list, { limit, offset });
          const all = expected(list, events);
          const densities = new PageDensities();
          densities.learn(request.listKey, known);
          const reader = new PageReader({ queryRunner: runner, densities, timeoutMs: 60_000, now: () => NOW_MS });
          const cost = await runner.measure(async () => {
            const found = await rowsOf(reader, request);
            expect(found.map(({ uuid }) => uuid)).toEqual(all.slice(offset, offset + limit + 1));
          });
          slices += cost.queries;
          pages += 1;
          expect(await walk(reader, list, limit)).toEqual(all);
        }
      },
    ),
    { numRuns: 3, endOnFailure: true },
  );
  // Otherwise the test would say nothing about windows.
  expect(slices).toBeGreaterThan(pages * 1.2);
});

/** Rows come one by one, as large ones do. */
const oneByOne: Pick<MeasuredRunner, 'rows'> = {
  async *rows(given) {
    for await (const batch of runner.rows(given)) for (const row of batch) yield [row];
  },
};

test.each([
  ['one in 2', 2, 200, 0],
  ['one in 50', 50, 200, 0],
  ['one in 201', 201, 200, 0],
  ['large ones', 3, 60, 150_000],
])('events whose owners match are once on a page: %s', async (_, every, count, characters) => {
  const properties = JSON.stringify({ text: 'x'.repeat(characters) });
  const events = Array.from({ length: count }, (_, index) =>
    anEvent({
      timestampMs: NOW_MS - index * 60_000,
      groupId: index % every === every - 1 ? 'acme' : 'bolt',
      properties,
    }),
  );
  await query.store('a', events);
  for (const direction of ['ASC', 'DESC'] as const) {
    const list: List = {
      filter: 'organization.properties.plan=pro',
      order: { field: 'timestamp', direction },
      range: {},
    };
    const densities = new PageDensities();
    const reader = new PageReader({ queryRunner: oneByOne, densities, timeoutMs: 60_000, now: () => NOW_MS });
    const all = expected(list, events);
    const found = await rowsOf(reader, parse(list, { limit: 10 }));
    expect(found.map(({ uuid }) => uuid)).toEqual(all.slice(0, 11));
    expect(await walk(reader, list, 10)).toEqual(all);
  }
});

test.each(['ASC', 'DESC'] as const)('events at the very end of a window are once on a page (%s)', async (direction) => {
  const list: List = { filter: '', order: { field: 'timestamp', direction }, range: {} };
  // The smallest window is ten minutes wide.
  const times = [-600_001, -600_000, -599_999, 0, 599_999, 600_000, 600_001];
  const events = times.map((offsetMs) => anEvent({ timestampMs: NOW_MS + offsetMs }));
  await query.store('a', events);
  const densities = new PageDensities();
  densities.learn('a', { newestMs: NOW_MS, oldestMs: NOW_MS, msPerEvent: 0 });
  const reader = new PageReader({ queryRunner: runner, densities, timeoutMs: 60_000, now: () => NOW_MS });
  const cost = await runner.measure(async () => {
    const found = await rowsOf(reader, parse(list, { limit: 100 }));
    expect(found.map(({ uuid }) => uuid)).toEqual(expected(list, events));
  });
  expect(cost.queries).toBe(3);
});

test('pages neither skip nor repeat an event while others arrive between their windows, in the past as well', async () => {
  await fc.assert(
    fc.asyncProperty(
      someEvents,
      fc.array(anyEvent, { minLength: 20, maxLength: 20 }),
      anyList,
      async (events, coming, list) => {
        const { startDate = 0, endDate = NOW_MS } = list.range;
        if (startDate > endDate) return;
        await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
        await query.store('a', events);
        const arrivals = [...coming];
        runner.beforeQuery = async () => {
          const next = arrivals.pop();
          if (next) await query.store('a', [next]);
        };
        const seen = await walk(
          new PageReader({ queryRunner: runner, densities: new PageDensities(), timeoutMs: 60_000, now: () => NOW_MS }),
          list,
          7,
        );
        expect(new Set(seen).size).toBe(seen.length);
        const atFirst = expected(list, events);
        expect(seen.filter((uuid) => atFirst.includes(uuid))).toEqual(atFirst);
        const order = expected(list, [...events, ...coming]);
        expect(seen).toEqual(order.filter((uuid) => seen.includes(uuid)));
      },
    ),
    { numRuns: 6, endOnFailure: true },
  );
});

test('a page takes no longer than its time in all, however many windows it has', async () => {
  await query.store('a', [anEvent({ timestampMs: NOW_MS - 900 * DAY_MS })]);
  const timeouts: number[] = [];
  runner.beforeQuery = async ({ budget }) => {
    timeouts.push(budget?.leftMs() ?? Number.NaN);
    await new Promise((resolve) => setTimeout(resolve, 60));
  };
  const reader = new PageReader({
    queryRunner: runner,
    densities: new PageDensities(),
    timeoutMs: 100,
    now: () => NOW_MS,
  });
  await rowsOf(
    reader,
    parse({ filter: '', order: { field: 'timestamp', direction: 'DESC' }, range: {} }, { limit: 5 }),
  );
  expect(timeouts.length).toBeGreaterThan(1);
  expect(timeouts.at(-1)).toBeLessThan(50);
  expect(timeouts.every((timeoutMs) => timeoutMs >= 1 && Number.isInteger(timeoutMs))).toBe(true);
});

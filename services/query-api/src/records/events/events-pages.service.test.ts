import fc, { sample } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, eachIdentifier, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { expectedPersonRecord, inOrder } from '../../testing/reference.ts';
import { ORDER_FIELDS } from './event-columns.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

/** Texts that sort differently as UTF-16, or that something between the client and ClickHouse might misread. */
const text = fc.oneof(
  fc.constantFrom(
    'a',
    'B',
    'ä',
    '\u{1f600}',
    '\ufffd',
    '\\N',
    "'",
    '\0',
    '\t\n',
    '%2F',
    'a+b',
    '10',
    '9',
    '?&#;=',
    'null',
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 5 }),
);
const identifier = fc.oneof(fc.constant(''), text);
const startMs = Date.UTC(2026, 1, 27);

const anyEvent: fc.Arbitrary<TestEvent> = fc.record({
  uuid: fc.oneof(
    fc.constantFrom(
      '00000000-0000-4000-8000-00000000000f',
      'f0000000-0000-4000-8000-000000000000',
      '0fffffff-ffff-4fff-9fff-ffffffffffff',
    ),
    fc.uuid(),
  ),
  // Few values, so that many are equal; over the end of a month.
  timestampMs: fc.integer({ min: 0, max: 5 }).map((days) => startMs + days * 86_400_000 + (days % 3)),
  receivedAtUs: fc.integer({ min: 0, max: 5_000 }).map((us) => startMs * 1_000 + us),
  event: text,
  type: fc.constantFrom('track', 'a'),
  ...eachIdentifier(identifier),
  properties: fc.json(),
  context: fc.constant('{}'),
  traits: fc.constant('{"a":[]}'),
});

const events = fc.uniqueArray(
  anyEvent.map((event) => ({ ...event, properties: `{"p":${event.properties}}` })),
  { minLength: 1, maxLength: 40, selector: ({ uuid, timestampMs }) => `${uuid} ${timestampMs}` },
);

const filters = fc.record(
  {
    ...eachIdentifier(fc.nat(39)),
    event: fc.nat(39),
    uuid: fc.nat(39),
    type: fc.nat(39),
    startDate: fc.nat(39),
    endDate: fc.nat(39),
  },
  { requiredKeys: [] },
);

interface Page {
  readonly records: unknown[];
  readonly total: number | null;
}

async function readByCursor(url: string, limits: readonly number[]): Promise<Page> {
  const records: unknown[] = [];
  let total: number | null = null;
  let cursor = '';
  for (let page = 0; page < 100; page += 1) {
    const limit = limits[page % limits.length] ?? 1;
    const { status, body } = await query.get(`${url}&limit=${limit}${cursor}`);
    expect(status).toBe(200);
    expect(body.results.length).toBeLessThanOrEqual(limit);
    records.push(...body.results);
    total = body.total;
    if (body.nextCursor === null) return { records, total };
    cursor = `&cursor=${body.nextCursor}`;
  }
  throw new Error('the pages do not end');
}

async function readByOffset(url: string, limit: number): Promise<Page> {
  const records: unknown[] = [];
  for (;;) {
    const { body } = await query.get(`${url}&limit=${limit}&offset=${records.length}`);
    records.push(...body.results);
    if (body.results.length < limit) return { records, total: body.total };
  }
}

test('pages by cursor and by offset hold every record once, in the requested order', async () => {
  await fc.assert(
    fc.asyncProperty(
      events,
      filters,
      fc.constantFrom(...ORDER_FIELDS),
      fc.constantFrom('ASC' as const, 'DESC' as const),
      fc.array(fc.integer({ min: 1, max: 17 }), { minLength: 1, maxLength: 3 }),
      async (stored, chosen, field, direction, limits) => {
        await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
        const half = Math.floor(stored.length / 2);
        await query.store('a', stored.slice(0, half));
        await query.store('a', stored.slice(half));
        await query.store('b', stored);

        let url = `/events?orderByField=${field}&orderByDirection=${direction}`;
        let expected: readonly TestEvent[] = stored;
        for (const [name, index] of Object.entries(chosen)) {
          const example = stored[index % stored.length] as TestEvent;
          if (name === 'startDate' || name === 'endDate') {
            url += `&${name}=${new Date(example.timestampMs).toISOString()}`;
            const sign = name === 'startDate' ? 1 : -1;
            expected = expected.filter((event) => sign * (event.timestampMs - example.timestampMs) >= 0);
          } else {
            const value = example[name as 'userId'];
            if (value === '') continue;
            url += `&${name}=${encodeURIComponent(value)}`;
            expected = expected.filter((event) => event[name as 'userId'] === value);
          }
        }
        const { startDate, endDate } = chosen;
        const start = startDate === undefined ? undefined : stored[startDate % stored.length];
        const end = endDate === undefined ? undefined : stored[endDate % stored.length];
        if (start && end && start.timestampMs > end.timestampMs) {
          expect((await query.get(url)).status).toBe(400);
          return;
        }
        const records = inOrder(expected, { field, direction }).map(expectedPersonRecord);
        expect(await readByCursor(url, limits)).toEqual({ records, total: records.length });
        expect(await readByOffset(url, limits[0] ?? 1)).toEqual({ records, total: records.length });
      },
    ),
    { numRuns: 8 },
  );
});

test('pages by cursor continue where the last one ended while events arrive', async () => {
  await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
  const at = (minute: number): TestEvent => ({
    ...(sample(anyEvent, 1)[0] as TestEvent),
    properties: '{}',
    uuid: `00000000-0000-4000-8000-0000000000${String(minute).padStart(2, '0')}`,
    timestampMs: startMs + minute * 60_000,
  });
  await query.store('a', [1, 2, 3, 4, 5, 6].map(at));
  const first = await query.get('/events?limit=2');
  await query.store('a', [at(7), at(8)]);
  const second = await query.get(`/events?limit=2&cursor=${first.body.nextCursor}`);
  const minutes = [...first.body.results, ...second.body.results].map(({ timestamp }) =>
    String(timestamp).slice(14, 16),
  );
  expect(minutes).toEqual(['06', '05', '04', '03']);
});

test.each(['ASC', 'DESC'])(
  'records of one uuid at several times are each on a page, ordered by uuid %s',
  async (direction) => {
    await query.clickHouse.command({ query: 'TRUNCATE TABLE events' });
    const uuid = '00000000-0000-4000-8000-00000000000a';
    await query.store(
      'a',
      [0, 1, 2, 3].map((days) => anEvent({ uuid, timestampMs: startMs + days * 86_400_000 })),
    );
    const { records } = await readByCursor(`/events?orderByField=uuid&orderByDirection=${direction}`, [1]);
    expect(new Set(records.map((record) => (record as { timestamp: string }).timestamp)).size).toBe(4);
    expect(records).toHaveLength(4);
  },
);

import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import type { ClickHouseReader, RowBatches } from './store/clickhouse-reader.ts';
import { type QueryService, startQuery } from './testing/query-service.ts';
import { readerWith } from './testing/reader-with.ts';
import { listenTo, PATIENCE, type TestStreams } from './testing/streams.ts';

// Events of nearly the largest size, read by queries that may have less memory than a block of them has.

const MEMORY_BYTES = 128 * 1_024 * 1_024;
const PARTS = 4;
const EVENTS_OF_PART = 150;
const EVENTS = PARTS * EVENTS_OF_PART;
const START = Date.UTC(2026, 2, 1);
const DAY = 'startDate=2026-03-01&endDate=2026-03-01';

let query: QueryService;
let streams: TestStreams;
/** The kinds of the queries that failed since the test began, and ClickHouse's words. */
let failures: string[] = [];

beforeAll(async () => {
  // ClickHouse holds a block for each thread, however many processors there are.
  const budgets = { QUERY_MEMORY_BYTES_MAX: String(MEMORY_BYTES), QUERY_THREADS_MAX: '16' };
  query = await startQuery(inject('clickhouseUrl'), { ...budgets, STREAM_INTERVAL_MS: '50' }, watched);
  streams = await listenTo(query);
  for (let part = 0; part < PARTS; part += 1) await storePart('a', part);
});
afterAll(() => query.stop());
afterEach(() => streams.closeAll());

/** Stores events whose times lie between those of the other parts: ClickHouse merges the parts to sort them. */
async function storePart(workspace: string, part: number): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT {workspace:String}, fromUnixTimestamp64Milli({start:Int64} + number * {parts:UInt8} + {part:UInt8}),
        generateUUIDv4(number), 'e', 'u',
        concat('{"text":"', repeat('x', 200000), '","n":', toString(number), '}'), now64(6)
      FROM numbers({events:UInt32})`,
    query_params: { workspace, start: START, part, parts: PARTS, events: EVENTS_OF_PART },
  });
}

function watched(reader: ClickHouseReader): ClickHouseReader {
  return readerWith(reader, { read: (request) => noting(request.queryId, reader.read(request)) });
}

async function* noting(queryId: string, batches: RowBatches): RowBatches {
  try {
    yield* batches;
  } catch (error) {
    failures.push(`${queryId.split('/')[1]}: ${(error as Error).message}`);
    throw error;
  }
}

/** The numbers of the events in a page, as their times tell them. It would take long to parse 100 MB. */
function numbersIn(text: string): number[] {
  return [...text.matchAll(/"timestamp":"([^"]+)"/g)].map(([, time = '']) => Date.parse(time) - START);
}

const numbers = Array.from({ length: EVENTS }, (_, index) => index);

test.each<[string, number[]]>([
  ['limit=500', numbers.toReversed().slice(0, 500)],
  ['limit=500&orderByDirection=ASC', numbers.slice(0, 500)],
  ['limit=500&offset=100', numbers.toReversed().slice(100)],
  ['limit=500&properties.n[gte]=0', numbers.toReversed().slice(0, 500)],
])('a page of large events is complete: %s', async (parameters, expected) => {
  const { status, text } = await query.get(`/events?${parameters}&total=none`);
  expect(status).toBe(200);
  expect(numbersIn(text)).toEqual(expected);
});

test.each(['properties.n=7', 'properties.n[lt]=8', 'properties.n[lt]=8&properties.text[contains]=x'])(
  'large events are counted by a filter: %s',
  async (filter) => {
    const expected = filter.includes('[lt]') ? 8 * PARTS : PARTS;
    const { body } = await query.get(`/events?limit=0&${filter}`);
    expect(body.total).toBe(expected);
    const names = await query.get(`/events/names?${filter}`);
    expect([names.status, names.body.results]).toMatchObject([200, [{ event: 'e', count: expected }]]);
    const series = await query.get(`/events/series?${DAY}&interval=none&${filter}`);
    expect([series.status, series.body]).toMatchObject([200, { total: expected }]);
  },
);

test.each([`series?${DAY}&measure=users&properties.n[gte]=0`, `retention?${DAY}&properties.n[gte]=0`])(
  'a report of large events is complete: %s',
  async (report) => {
    const { status, text } = await query.get(`/events/${report}`);
    expect([status, JSON.parse(text)]).toMatchObject([200, { complete: true, exact: true }]);
  },
);

test('a menu of large events reads small blocks at once', async () => {
  failures = [];
  const { status, body } = await query.get('/events/properties');
  expect([status, body.results]).toMatchObject([200, [{ path: 'properties.n' }, { path: 'properties.text' }]]);
  expect(failures.filter((failure) => failure.includes('memory'))).toEqual([]);
});

test('a stream sends large events, also many of them at once', async () => {
  const first = await streams.open('', { workspace: 'b' });
  const lastEventId = first.lastEventId;
  first.close();
  for (let part = 0; part < PARTS; part += 1) await storePart('b', part);
  const resumed = await streams.open('', { workspace: 'b', lastEventId });
  await eventually(() => resumed.uuids.length, PATIENCE).toBe(EVENTS);
  expect(new Set(resumed.uuids).size).toBe(EVENTS);
});

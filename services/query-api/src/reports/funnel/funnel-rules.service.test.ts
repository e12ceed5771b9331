import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { outOfTime, SLOW_FILTER, storeMany } from '../../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import type { FunnelReport } from './funnel.ts';
import { funnelParameters } from './funnel-parameters.ts';

let query: QueryService;

const START_MS = Date.UTC(2026, 2, 1);
const DAYS = 'startDate=2026-03-01&endDate=2026-03-31';

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

async function funnel(parameters: string, workspace = 'a'): Promise<FunnelReport> {
  const { status, body } = await query.get(`/events/funnel?${parameters}`, workspace);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body as unknown as FunnelReport;
}

/** An event of jane: its name, milliseconds after the start, its uuid, and when it was received. */
type Moment = readonly [event: string, ms: number, uuid?: string, receivedUs?: number];

const uuid = (tail: string) => `00000000-0000-${tail}`;

// The steps of each test have names of their own.
test.each<{ what: string; moments: readonly Moment[]; parameters: string; counts: number[]; medians: unknown[] }>([
  {
    what: 'an event is one step, also when it is an event of two',
    moments: [['r1', 0]],
    parameters: 'steps=r1,r1',
    counts: [1, 0],
    medians: [null, null],
  },
  {
    what: 'a name may be two steps in a row, with events at the same time',
    moments: [
      ['r2', 0],
      ['r2', 0],
    ],
    parameters: 'steps=r2,r2',
    counts: [1, 1],
    medians: [null, 0],
  },
  {
    what: 'the end of the window is inclusive',
    moments: [
      ['r3', 0],
      ['r3b', 7 * 86_400_000],
    ],
    parameters: 'steps=r3,r3b',
    counts: [1, 1],
    medians: [null, 604_800],
  },
  {
    what: 'a millisecond after the window is too late, of the first step as of any',
    moments: [
      ['r4', 0],
      ['r4b', 59_000],
      ['r4c', 60_001],
    ],
    parameters: 'steps=r4,r4b,r4c&within=1m',
    counts: [1, 1, 0],
    medians: [null, 59, null],
  },
  {
    what: 'of two events at the same time the one that was received first came first, whatever their uuids',
    moments: [
      ['a1', 0, uuid('0002-0000-000000000000'), START_MS * 1_000],
      ['a1b', 0, uuid('0001-0000-000000000000'), START_MS * 1_000 + 1],
      ['a1c', 0, uuid('0000-ffff-000000000000'), START_MS * 1_000 + 2],
    ],
    parameters: 'steps=a1,a1b,a1c',
    counts: [1, 1, 1],
    medians: [null, 0, 0],
  },
  {
    what: 'events at the same time that were received in the other order are no attempt',
    moments: [
      ['a2', 0, uuid('0000-ffff-000000000000'), START_MS * 1_000 + 1],
      ['a2b', 0, uuid('0001-0000-000000000000'), START_MS * 1_000],
    ],
    parameters: 'steps=a2,a2b',
    counts: [1, 0],
    medians: [null, null],
  },
  {
    what: 'of two events at the same time, received at once, the one with the smaller uuid, as text, came first',
    // ClickHouse's own order of these uuids is the opposite one.
    moments: [
      ['r5', 0, uuid('0000-ffff-000000000000')],
      ['r5b', 0, uuid('0001-0000-000000000000')],
    ],
    parameters: 'steps=r5,r5b',
    counts: [1, 1],
    medians: [null, 0],
  },
  {
    what: 'events at the same time in the other order are no attempt',
    moments: [
      ['r6', 0, uuid('0001-0000-000000000000')],
      ['r6b', 0, uuid('0000-ffff-000000000000')],
    ],
    parameters: 'steps=r6,r6b',
    counts: [1, 0],
    medians: [null, null],
  },
  {
    what: 'the attempt that gets furthest counts, not the first or the last',
    moments: [
      ['r7', 0],
      ['r7b', 9_000],
      ['r7', 20_000],
      ['r7b', 21_500],
      ['r7c', 22_000],
      ['r7', 40_000],
      ['r7b', 41_000],
    ],
    parameters: 'steps=r7,r7b,r7c&within=10s',
    counts: [1, 1, 1],
    medians: [null, 1.5, 0.5],
  },
  {
    what: 'of attempts that get equally far the earliest counts, and each step is the earliest event that fits',
    moments: [
      ['r8', 0],
      ['r8', 1_000],
      ['r8b', 2_000],
      ['r8b', 3_000],
      ['r8c', 4_000],
      ['r8c', 4_001],
      ['r8', 60_000],
      ['r8b', 60_001],
      ['r8c', 60_002],
    ],
    parameters: 'steps=r8,r8b,r8c&within=10s',
    counts: [1, 1, 1],
    medians: [null, 2, 2],
  },
  {
    what: 'a comma in a name is escaped, and names need not be plain',
    moments: [
      ["r9, it's", 0],
      ['r9\\b', 1],
    ],
    parameters: `steps=${encodeURIComponent("r9\\, it's,r9\\\\b")}`,
    counts: [1, 1],
    medians: [null, 0.001],
  },
])('$what', async ({ moments, parameters, counts, medians }) => {
  await query.store(
    'a',
    moments.map(([event, ms, id, receivedAtUs]) =>
      anEvent({
        ...{ event, timestampMs: START_MS + ms, userId: 'jane' },
        ...{ ...(id && { uuid: id }), ...(receivedAtUs && { receivedAtUs }) },
      }),
    ),
  );
  const { steps, complete } = await funnel(`${parameters}&${DAYS}`);
  expect(complete).toBe(true);
  expect(steps.map(({ count }) => count)).toEqual(counts);
  expect(steps.map(({ medianSecondsFromPrevious }) => medianSecondsFromPrevious)).toEqual(medians);
});

test('a median of two is the mean, to the millisecond, and counts those alone who completed the step', async () => {
  const persons = [1, 4, undefined].flatMap((ms, index) => [
    anEvent({ event: 'm1', userId: `m${index}`, timestampMs: START_MS }),
    ...(ms ? [anEvent({ event: 'm2', userId: `m${index}`, timestampMs: START_MS + ms })] : []),
  ]);
  await query.store('a', persons);
  const { steps } = await funnel(`steps=m1,m2&${DAYS}`);
  expect(steps).toEqual([
    { event: 'm1', count: 3, medianSecondsFromPrevious: null },
    { event: 'm2', count: 2, medianSecondsFromPrevious: 0.003 },
  ]);
});

test('who began in the range has the whole window, also past the end of the range; nobody begins after it', async () => {
  const at = (event: string, userId: string, hours: number) =>
    anEvent({ event, userId, timestampMs: START_MS + hours * 3_600_000 });
  await query.store('d', [
    ...[at('w1', 'ada', 23), at('w2', 'ada', 30)],
    ...[at('w1', 'bob', 23), at('w2', 'bob', 23 + 10), at('w2', 'bob', 23 + 10.5)],
    ...[at('w1', 'cem', 12), at('w2', 'cem', 23 + 10)],
    ...[at('w1', 'dee', 24), at('w2', 'dee', 25)],
    ...[at('w1', 'eve', -1), at('w2', 'eve', 1)],
    ...[at('w1', 'fay', 23), at('w1', 'fay', 25)],
  ]);
  const range = 'startDate=2026-03-01&endDate=2026-03-01&within=10h';
  const counts = async (steps: string) =>
    (await funnel(`steps=${steps}&${range}`, 'd')).steps.map(({ count }) => count);
  expect(await counts('w1,w2')).toEqual([4, 2]);
  // An event after the range is a later step of the same name.
  expect(await counts('w1,w1')).toEqual([4, 1]);
  const url = `/events/funnel/people?steps=w1,w2&step=2&${range}`;
  const { results, endDate } = (await query.get(url, 'd')).body as unknown as {
    results: { id: string }[];
    endDate: string;
  };
  expect([results.map(({ id }) => id), endDate]).toEqual([['ada', 'bob'], '2026-03-01T23:59:59.999Z']);
  const farAway = 'startDate=2026-03-01&endDate=9999-12-31&within=36500d';
  expect((await funnel(`steps=w1,w2&${farAway}`, 'd')).steps.map(({ count }) => count)).toEqual([5, 4]);
});

test('events before 1970 are in their order', async () => {
  await query.store('a', [
    anEvent({ event: 'old', userId: 'jane', timestampMs: Date.UTC(1900, 0, 1) }),
    anEvent({ event: 'older', userId: 'jane', timestampMs: Date.UTC(1900, 0, 2) }),
  ]);
  const { steps } = await funnel('steps=old,older&startDate=1900-01-01&within=36500d');
  expect(steps.map(({ medianSecondsFromPrevious }) => medianSecondsFromPrevious)).toEqual([null, 86_400]);
});

test('without an event the counts are 0, and the range ends now', async () => {
  const before = Date.now();
  const { endDate, ...report } = await funnel('steps=nothing,at-all&startDate=2026-03-01&groupBy=type', 'h');
  expect(Date.parse(endDate)).toBeGreaterThanOrEqual(before);
  expect(report).toEqual({
    steps: ['nothing', 'at-all'].map((event) => ({ event, count: 0, medianSecondsFromPrevious: null })),
    groupBy: ['type'],
    groups: [],
    startDate: '2026-03-01T00:00:00.000Z',
    complete: true,
    exact: true,
  });
});

test('groups are the ten largest by their first step', async () => {
  const events = Array.from({ length: 12 }, (_, group) =>
    Array.from({ length: group === 11 ? 3 : 1 }, (__, user) =>
      anEvent({ event: 'g1', userId: `${group}-${user}`, instanceId: String.fromCharCode(97 + group) }),
    ),
  );
  await query.store('b', events.flat());
  const { groups } = await funnel(`steps=g1,g2&groupBy=instanceId&${DAYS}`, 'b');
  expect(groups?.map(({ group, steps }) => [...group, steps[0]?.count])).toEqual([
    ['l', 3],
    ...[...'abcdefghi'].map((key) => [key, 1]),
  ]);
});

test('a person is in the group of the attempt that counts', async () => {
  const at = (event: string, minutes: number, instanceId: string) =>
    anEvent({ event, timestampMs: START_MS + minutes * 60_000, userId: 'jane', instanceId });
  await query.store('c', [at('k1', 0, 'first'), at('k1', 60, 'second'), at('k2', 70, 'other'), at('k1', 80, 'third')]);
  const { groups } = await funnel(`steps=k1,k2&groupBy=instanceId&within=30m&${DAYS}`, 'c');
  expect(groups?.map(({ group, steps }) => [...group, ...steps.map(({ count }) => count)])).toEqual([['second', 1, 1]]);
});

const TEN_DOTS = `properties.${'a.'.repeat(10)}b`;

test.each([
  ['', ['startDate', 'steps']],
  ['steps=a&startDate=2026-03-01', ['steps']],
  ['steps=a,b,c,d,e,f,g,h,i&startDate=2026-03-01', ['steps']],
  ['steps=a,&startDate=2026-03-02&endDate=2026-03-01', ['steps', 'startDate']],
  ['steps=a,b&startDate=2026-03-01&within=7w&by=device&limit=3', ['by', 'limit', 'within']],
  ['steps=a,b&startDate=2026-03-01&within=36501d', ['within']],
  ['steps=a,b&startDate=2026-03-01&within=0d&groupBy=timestamp', ['groupBy', 'within']],
  [
    'steps=a,b&startDate=2026-03-01&step3.properties.n=1&step9.properties.n=1',
    ['step3.properties.n', 'step9.properties.n'],
  ],
  [
    'steps=a,b&startDate=2026-03-01&step1.userId=ada&step2.properties.n[less]=1',
    ['step1.userId', 'step2.properties.n[less]'],
  ],
  [`steps=a,b&startDate=2026-03-01&step1.${TEN_DOTS}=1`, [`step1.${TEN_DOTS}`]],
])('refuses %s', async (parameters, paths) => {
  const { status, body } = await query.get(`/events/funnel?${parameters}`);
  expect([status, body.code]).toEqual([400, 'invalid_request']);
  expect(body.errors.map(({ path }) => path).sort()).toEqual([...paths].sort());
});

test('at most 20 filters on properties, those of all steps together', async () => {
  const filters = Array.from({ length: 21 }, (_, index) => `step${(index % 2) + 1}.properties.p${index}=1`);
  const url = `/events/funnel?steps=a,b&${DAYS}&`;
  expect((await query.get(url + filters.slice(1).join('&'))).status).toBe(200);
  const { status, body } = await query.get(url + filters.join('&'));
  expect([status, body.errors.map(({ code }) => code)]).toEqual([400, ['too_many']]);
});

test('responses and parameters are as documented', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  for (const url of [
    `/events/funnel?steps=r1,r1&groupBy=event&${DAYS}`,
    `/events/funnel?steps=r8,r8b,r8c&step2.properties.n[exists]=false&${DAYS}`,
  ]) {
    const response = await query.app.inject({ url, headers: { authorization: 'Bearer a' } });
    expect(response.statusCode).toBe(200);
    expect(checker.errorsOfResponse('GET /events/funnel', response)).toBeUndefined();
  }
  const parameters = checker.operations.get('GET /events/funnel')?.value['parameters'] as {
    in?: string;
    name?: string;
  }[];
  expect(parameters.filter((one) => one.in === 'query').map(({ name }) => name)).toEqual([
    ...Object.keys(funnelParameters),
    'properties',
    'context',
    'traits',
    'userProperties',
    'organizationProperties',
    'stepFilters',
    'stepSegments',
    'operators',
  ]);
});

test('a funnel that runs out of its time says so, and has no numbers', async () => {
  const hurried = await startQuery(inject('clickhouseUrl'), {}, outOfTime);
  try {
    await storeMany(hurried, 'a', 1_000);
    const { status, body } = await hurried.get(`/events/funnel?steps=e,e&groupBy=event&${DAYS}&${SLOW_FILTER}`);
    expect([status, body]).toEqual([
      200,
      {
        steps: ['e', 'e'].map((event) => ({ event, count: null, medianSecondsFromPrevious: null })),
        groupBy: ['event'],
        startDate: '2026-03-01T00:00:00.000Z',
        endDate: '2026-03-31T23:59:59.999Z',
        complete: false,
        exact: true,
      },
    ]);
  } finally {
    await hurried.stop();
  }
});

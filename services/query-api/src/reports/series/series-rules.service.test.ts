import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import type { SeriesReport } from './series.ts';

let query: QueryService;

const START = 'startDate=2026-03-01';

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  const at = (time: string) => Date.parse(`2026-03-${time}Z`);
  await query.store('a', [
    anEvent({ timestampMs: at('01T10:00'), userId: 'ada', properties: '{"plan":"pro","amount":5}' }),
    anEvent({ timestampMs: at('01T23:59:59.999'), userId: 'ada', properties: '{"plan":"free"}' }),
    anEvent({ timestampMs: at('03T00:00'), userId: 'bob', properties: '{"plan":"pro","amount":"7"}' }),
    anEvent({ timestampMs: at('03T12:00'), userId: '', properties: '{"plan":1}' }),
  ]);
});
afterAll(() => query.stop());

async function series(parameters: string, workspace = 'a', service = query): Promise<SeriesReport> {
  const { status, text } = await service.get(`/events/series?${parameters}`, workspace);
  expect([status, text]).toEqual([200, text]);
  return JSON.parse(text) as SeriesReport;
}

test('a series has a bucket for every day, and says what was applied', async () => {
  expect(await series(`${START}&endDate=2026-03-03`)).toEqual({
    ...{ interval: 'day', timeZone: 'UTC', measure: 'count', groupBy: [] },
    startDate: '2026-03-01T00:00:00.000Z',
    endDate: '2026-03-03T23:59:59.999Z',
    buckets: ['2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z', '2026-03-03T00:00:00.000Z'],
    series: [{ group: [], total: 4, values: [2, 0, 2] }],
    ...{ other: null, total: 4, complete: true, exact: true },
  });
});

test('a bucket is named by its own beginning, which can lie before the range', async () => {
  const {
    startDate,
    buckets,
    series: lines,
  } = await series('startDate=2026-03-01T12:00:00Z&endDate=2026-03-02T10:00:00Z&timeZone=asia/kathmandu');
  expect([startDate, buckets]).toEqual([
    '2026-03-01T12:00:00.000Z',
    ['2026-02-28T18:15:00.000Z', '2026-03-01T18:15:00.000Z'],
  ]);
  expect(lines).toEqual([{ group: [], total: 1, values: [0, 1] }]);
});

test('buckets that are no whole hours of UTC are counted to the minute', async () => {
  const at = (time: string) => anEvent({ timestampMs: Date.parse(`2026-03-01T${time}Z`) });
  await query.store('c', [at('18:10'), at('18:14:59.999'), at('18:15')]);
  const { buckets, series: lines } = await series(`${START}&endDate=2026-03-01&timeZone=Asia/Kathmandu`, 'c');
  expect([buckets.length, lines[0]?.values]).toEqual([2, [2, 1]]);
});

test('events of every century that can be stored are in the buckets of their own time', async () => {
  const times = ['1900-01-01T00:30', '1950-06-01T12:30', '1969-12-31T23:30', '2086-07-07T18:28', '2250-01-01T00:00'];
  await query.store(
    'd',
    times.map((time) => anEvent({ timestampMs: Date.parse(`${time}Z`) })),
  );
  for (const grouped of ['', '&groupBy=event']) {
    const asked = `startDate=1900-01-01&endDate=2290-01-01&interval=month${grouped}`;
    const { buckets, series: lines } = await series(asked, 'd');
    const filled = buckets.filter((_, index) => lines[0]?.values[index] !== 0);
    expect(filled).toEqual(times.map((time) => `${time.slice(0, 7)}-01T00:00:00.000Z`));
    const { total } = await series(`startDate=2086-07-01&endDate=2086-07-31&interval=none${grouped}`, 'd');
    expect(total).toBe(1);
  }
});

test('the range ends now when endDate is left out', async () => {
  const begunMs = Date.now();
  const { endDate, total } = await series(`${START}&interval=none`);
  expect(total).toBe(4);
  expect(Date.parse(endDate)).toBeGreaterThanOrEqual(begunMs);
  expect(Date.parse(endDate)).toBeLessThanOrEqual(Date.now());
});

test('totals of distinct counts are no sums, and other groups are counted together', async () => {
  const asked = `${START}&endDate=2026-03-03&measure=users`;
  expect(await series(`${asked}&groupBy=properties.plan&groups=1`)).toMatchObject({
    series: [{ group: ['pro'], total: 2, values: [1, 0, 1] }],
    other: { total: 1, values: [1, 0, 0] },
    total: 2,
  });
  expect((await series(`${asked}&groupBy=type`)).series).toEqual([{ group: ['track'], total: 2, values: [1, 0, 1] }]);
});

test('numbers and strings are different keys, and what is no number has no part in a sum', async () => {
  const { series: lines, total } = await series(
    `${START}&endDate=2026-03-03&interval=none&groupBy=properties.plan,userId&measure=sum:properties.amount`,
  );
  expect(lines.map(({ group, total }) => [group, total])).toEqual([
    [['pro', 'ada'], 5],
    [[1, null], 0],
    [['free', 'ada'], 0],
    [['pro', 'bob'], 0],
  ]);
  expect(total).toBe(5);
});

test('a number is one group however it is written, and one that no 64-bit float holds is in the group of its float', async () => {
  const groups = [
    // Integers of up to 19 digits are exact.
    ['1234567890123456789'],
    ['1234567890123456788'],
    ['12345678901234567890', '12345678901234567891', '1.2345678901234567e19'],
    ['3.141592653589793238', '3.141592653589793'],
    ['100', '1e2', '100.0'],
  ];
  await query.store(
    'd',
    groups.flat().map((n) => anEvent({ properties: `{"n":${n}}` })),
  );
  const { text } = await query.get(
    `/events/series?${START}&endDate=2026-03-01&interval=none&groupBy=properties.n`,
    'd',
  );
  const found = [...text.matchAll(/\{"group":\[([^\]]*)\],"total":(\d+)/g)].map(([, key, total]) => [key, total]);
  expect(found).toEqual([
    ['100', '3'],
    ['12345678901234567000', '3'],
    ['3.141592653589793', '2'],
    ['1234567890123456788', '1'],
    ['1234567890123456789', '1'],
  ]);
});

test.each(['sum', 'avg'])('a %s beyond the range of 64-bit floats is null, and not exact', async (measure) => {
  const at = (day: number, n: string) =>
    anEvent({ timestampMs: Date.UTC(2026, 2, day), properties: `{"n":${n}}`, event: measure });
  await query.store('e', [at(1, '1e308'), at(1, '1e308'), at(2, '5')]);
  const asked = `${START}&endDate=2026-03-02&event=${measure}&measure=${measure}:properties.n`;
  expect(await series(asked, 'e')).toMatchObject({
    series: [{ total: null, values: [null, 5] }],
    ...{ total: null, complete: true, exact: false },
  });
  expect(await series(`${asked}&startDate=2026-03-02`.replace(`${START}&`, ''), 'e')).toMatchObject({
    series: [{ total: 5, values: [5] }],
    exact: true,
  });
});

test('without events there are empty buckets, and no groups', async () => {
  const range = 'startDate=2020-01-01&endDate=2020-01-02';
  expect(await series(`${range}&measure=avg:properties.amount`)).toMatchObject({
    series: [{ group: [], total: null, values: [null, null] }],
    ...{ other: null, total: null },
  });
  expect(await series(`${range}&groupBy=event&compare=previous`)).toMatchObject({
    ...{ series: [], other: null, total: 0 },
    previous: { startDate: '2019-12-30T00:00:00.000Z', series: [], other: null, total: 0 },
  });
});

test('a range of whole months is compared with as many months, any other with as much time', async () => {
  const previous = async (parameters: string) => {
    const report = await series(`${parameters}&compare=previous`);
    return [report.previous?.startDate, report.previous?.endDate, report.previous?.buckets.length];
  };
  expect(await previous('startDate=2026-03-01&endDate=2026-04-30&interval=month')).toEqual([
    '2026-01-01T00:00:00.000Z',
    '2026-02-28T23:59:59.999Z',
    2,
  ]);
  expect(await previous('startDate=2026-03-01&endDate=2026-04-29&interval=month')).toEqual([
    '2025-12-31T00:00:00.000Z',
    '2026-02-28T23:59:59.999Z',
    3,
  ]);
  // Seven days in Berlin of which one has 23 hours.
  const week = 'startDate=2026-03-22T23:00:00Z&endDate=2026-03-29T21:59:59.999Z&timeZone=Europe/Berlin';
  expect(await previous(week)).toEqual(['2026-03-15T23:00:00.000Z', '2026-03-22T22:59:59.999Z', 7]);
  expect(await previous(`${week}&interval=none`)).toEqual(['2026-03-16T00:00:00.000Z', '2026-03-22T22:59:59.999Z', 1]);
});

test('weeks begin on the day of weekStart, also when whole ones are compared', async () => {
  // 2026-03-01 was a Sunday.
  const weeks = 'startDate=2026-03-01&endDate=2026-03-14&interval=week&compare=previous';
  const starting = async (weekStart: string) => await series(`${weeks}${weekStart}`);
  expect(await starting('&weekStart=sunday')).toMatchObject({
    buckets: ['2026-03-01T00:00:00.000Z', '2026-03-08T00:00:00.000Z'],
    previous: { buckets: ['2026-02-15T00:00:00.000Z', '2026-02-22T00:00:00.000Z'] },
  });
  expect((await starting('&weekStart=saturday')).buckets[0]).toBe('2026-02-28T00:00:00.000Z');
  expect((await starting('')).buckets).toEqual((await starting('&weekStart=monday')).buckets);
  expect((await starting('')).buckets[0]).toBe('2026-02-23T00:00:00.000Z');
});

test('previous numbers are of the same groups in the same order', async () => {
  const { series: lines, previous } = await series(
    'startDate=2026-03-03&endDate=2026-03-04&groupBy=properties.plan&compare=previous&measure=users',
  );
  expect(lines.map(({ group }) => group)).toEqual([['pro'], [1]]);
  expect(previous).toMatchObject({
    series: [
      { group: ['pro'], total: 1, values: [1, 0] },
      { group: [1], total: 0, values: [0, 0] },
    ],
    other: { total: 1, values: [1, 0] },
    total: 1,
  });
});

test('a bad request names every error', async () => {
  const { status, body } = await query.get(
    '/events/series?interval=year&timeZone=Berlin&measure=sum:amount&groupBy=event,colour&groups=101&compare=next&limit=1',
  );
  expect(status).toBe(400);
  expect(body.code).toBe('invalid_request');
  expect(body.errors.map(({ path }) => path).toSorted()).toEqual(
    ['compare', 'groupBy', 'groups', 'interval', 'limit', 'measure', 'startDate', 'timeZone'].toSorted(),
  );
});

test.each([
  ['endDate=2026-03-01', 'startDate', 'is required'],
  ['startDate=2026-03-02&endDate=2026-03-01', 'startDate', 'must not be after endDate'],
  [`${START}&groupBy=event,type,userId`, 'groupBy', 'must name at most 2'],
  [`${START}&groupBy=event,event`, 'groupBy', 'must name each one once'],
  [`${START}&groupBy=properties.a.b.c.d.e.f.g.h`, 'groupBy', 'the name of a property may have at most 6 dots'],
  [`${START}&groupBy=anonymousId`, 'groupBy', expect.stringContaining('must be one of type, event')],
  [`${START}&groups=5`, 'groups', 'needs groupBy'],
  [`${START}&groupBy=event&groups=0`, 'groups', 'must be a whole number from 1 to 100'],
  [`${START}&measure=sum`, 'measure', expect.stringContaining('must be one of count, users')],
  [`${START}&measure=count:properties.a`, 'measure', expect.stringContaining('must be one of count, users')],
  [`${START}&measure=p50:properties.a.b.c.d.e.f.g.h`, 'measure', 'the name of a property may have at most 6 dots'],
  [`${START}&timeZone=%2B01:00`, 'timeZone', 'must be the name of an IANA time zone, such as Europe/Berlin'],
  ['startDate=2012-06-01&endDate=2026-03-01', 'interval', expect.stringContaining('more than 5000 of these intervals')],
  ['startDate=1900-01-01&endDate=2290-01-01&interval=minute', 'interval', expect.stringContaining('more than 5000')],
])('%s is refused at %s', async (parameters, path, message) => {
  const { status, body } = await query.get(`/events/series?${parameters}`);
  expect([status, body.errors]).toEqual([400, [expect.objectContaining({ path, message })]]);
});

test('five thousand buckets are answered, in a zone whose clocks change', async () => {
  const start = Date.parse('2026-03-04T00:00:00Z') - 5_000 * 86_400_000;
  const { buckets, total } = await series(
    `startDate=${new Date(start).toISOString()}&endDate=2026-03-03T22:59:59Z&timeZone=Europe/Berlin&measure=users`,
  );
  expect([buckets.length, total]).toEqual([5_000, 2]);
});

test('the largest of many groups are found among more than fit into memory at once', async () => {
  const rows = 250_000;
  await query.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
      SELECT 'b', toDateTime64('2026-03-01', 3, 'UTC') + toIntervalSecond(number % 200), generateUUIDv4(number), 'e',
        if(number % 10000 < 3, concat('large-', toString(number % 10000)), concat('u', toString(number))), now64(6)
      FROM numbers({rows:UInt64})`,
    query_params: { rows },
  });
  for (const measure of ['count', 'users', 'organizations']) {
    const asked = `${START}&endDate=2026-03-01&groupBy=userId&groups=3&measure=${measure}&compare=previous`;
    const report = await series(asked, 'b');
    const size = { count: 25, users: 1, organizations: 0 }[measure];
    expect(report).toMatchObject({
      series: [0, 1, 2].map((index) => ({ group: [`large-${index}`], total: size, values: [size] })),
      other: { total: { count: rows - 75, users: rows - 75, organizations: 0 }[measure] },
      total: { count: rows, users: rows - 72, organizations: 0 }[measure],
      ...{ complete: true, exact: true },
      previous: { series: [{ group: ['large-0'], total: 0 }, {}, {}], other: null, total: 0 },
    });
  }
});

test('a report whose filters by organizations find nothing says how many events have an organization', async () => {
  await query.store('h', [
    anEvent({ event: 'open', userId: 'ada', groupId: 'acme', timestampMs: Date.UTC(2026, 2, 1) }),
    anEvent({ event: 'open', userId: 'bob', timestampMs: Date.UTC(2026, 2, 1) }),
    anEvent({ event: 'save', userId: 'bob', timestampMs: Date.UTC(2026, 2, 1) }),
    anEvent({ event: 'open', userId: 'cem', groupId: 'acme', timestampMs: Date.UTC(2026, 3, 1) }),
  ]);
  const said = async (report: string, filter: string) => {
    const { text } = await query.get(`/events/${report}&${START}&endDate=2026-03-31&${filter}`, 'h');
    return JSON.parse(text).withoutOrganizationFilters;
  };
  for (const report of ['series?groupBy=event', 'funnel?steps=open,save', 'retention?by=organization']) {
    const plan = 'organization.properties.plan=pro';
    expect(await said(report, plan), report).toEqual({ events: 3, withOrganization: 1 });
    expect(await said(report, `organization.firstSeenAt[gt]=2026-01-01&${plan}&userId=bob`)).toEqual({
      ...{ events: 2, withOrganization: 0 },
    });
    expect(await said(report, 'organization.properties.plan[ne]=pro'), report).toBeUndefined();
    expect(await said(report, 'user.properties.plan=pro'), report).toBeUndefined();
  }
});

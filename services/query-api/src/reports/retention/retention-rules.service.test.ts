import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { outOfTime, SLOW_FILTER, storeMany } from '../../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import type { RetentionReport } from './retention.ts';
import { retentionParameters } from './retention-parameters.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  const events = [
    ['signed_up', 'ada', '2026-03-02T09:00:00Z'],
    ['opened', 'ada', '2026-03-03T09:00:00Z'],
    ['opened', 'ada', '2026-03-03T10:00:00Z'],
    ['opened', 'ada', '2026-03-12T09:00:00Z'],
    ['signed_up', 'bob', '2026-03-04T23:30:00Z'],
    ['signed_up', 'bob', '2026-03-06T09:00:00Z'],
    ['opened', 'cem', '2026-03-02T09:00:00Z'],
    ['signed_up', '', '2026-03-02T09:00:00Z'],
  ] as const;
  await query.store(
    'a',
    events.map(([event, userId, time]) => anEvent({ event, userId, timestampMs: Date.parse(time) })),
  );
});
afterAll(() => query.stop());

async function retention(parameters: string): Promise<RetentionReport> {
  const { status, body } = await query.get(`/events/retention?${parameters}`);
  expect([status, body]).toEqual([200, expect.anything()]);
  return body as unknown as RetentionReport;
}

/** The cohorts that are not empty: their day, their size, and who returned. */
async function cohorts(parameters: string): Promise<unknown[]> {
  const found = (await retention(`${parameters}&startDate=2026-03-02&endDate=2026-03-12`)).cohorts;
  return found.filter(({ size }) => size > 0).map(({ start, size, returned }) => [start.slice(5, 10), size, returned]);
}

test('a cohort is of the users whose first event it is, and each returns once an interval', async () => {
  expect(await cohorts('event=signed_up&returnEvent=opened&periods=3')).toEqual([
    ['03-02', 1, [0, 1, 0]],
    ['03-04', 1, [0, 0, 0]],
  ]);
});

test('who came back in the interval of the cohort is counted, with the return events that are not before the first event', async () => {
  const did = (userId: string, event: string, time: string) =>
    anEvent({ event, userId, timestampMs: Date.parse(`2026-06-0${time}:00:00Z`) });
  await query.store('b', [
    ...[did('ada', 'signed_up', '1T10'), did('ada', 'bought', '1T12')],
    ...[did('bob', 'bought', '1T10'), did('bob', 'signed_up', '1T11'), did('bob', 'bought', '2T10')],
    ...[did('cem', 'signed_up', '1T12'), did('dee', 'signed_up', '1T12'), did('dee', 'bought', '1T12')],
    ...[did('eve', 'bought', '1T10'), did('eve', 'signed_up', '1T11'), did('eve', 'bought', '1T12')],
  ]);
  const parameters = 'startDate=2026-06-01&endDate=2026-06-02&periods=2&event=signed_up&returnEvent=bought';
  const { body } = await query.get(`/events/retention?${parameters}`, 'b');
  expect((body as unknown as RetentionReport).cohorts).toMatchObject([
    { size: 5, returned: [3, 1] },
    { size: 0, returned: [0, 0] },
  ]);
  const idsOf = async (more: string) => {
    const people = await query.get(`/events/retention/people?${parameters}&cohort=2026-06-01${more}`, 'b');
    return (people.body.results as unknown as { id: string }[]).map(({ id }) => id);
  };
  expect(await idsOf('&period=0')).toEqual(['ada', 'dee', 'eve']);
  expect(await idsOf('')).toEqual(['ada', 'bob', 'cem', 'dee', 'eve']);
});

test('organizations come back as users do, and groups are those of the event that makes the cohort', async () => {
  const did = (userId: string, groupId: string, plan: string, time: string) =>
    anEvent({ userId, groupId, properties: `{"plan":${plan}}`, timestampMs: Date.parse(`2026-06-0${time}:00:00Z`) });
  await query.store('d', [
    ...[did('ada', 'acme', '"pro"', '1T10'), did('bob', 'acme', '"free"', '2T10')],
    ...[did('cem', 'bolt', 'null', '2T09'), did('cem', '', '"pro"', '3T09')],
  ]);
  const range = 'startDate=2026-06-01&endDate=2026-06-03&periods=2';
  const found = async (more: string) => {
    const { body } = await query.get(`/events/retention?${range}${more}`, 'd');
    return body as unknown as RetentionReport;
  };
  const sized = ({ cohorts }: Pick<RetentionReport, 'cohorts'>) =>
    cohorts.map(({ size, returned }) => [size, returned[1]]);
  expect(sized(await found('&by=organization'))).toEqual([
    [1, 1],
    [1, 0],
    [0, 0],
  ]);
  const grouped = await found('&groupBy=properties.plan');
  expect(grouped).toMatchObject({ groupBy: ['properties.plan'], cohorts: (await found('')).cohorts });
  expect(grouped.groups?.map((group) => [group.group, sized(group)])).toEqual([
    [
      ['free'],
      [
        [0, 0],
        [1, 0],
        [0, 0],
      ],
    ],
    [
      [null],
      [
        [0, 0],
        [1, 1],
        [0, 0],
      ],
    ],
    [
      ['pro'],
      [
        [1, 0],
        [0, 0],
        [0, 0],
      ],
    ],
  ]);
  const people = async (more: string) => {
    const { body } = await query.get(`/events/retention/people?${range}&cohort=2026-06-02${more}`, 'd');
    return body.results?.map(({ id }) => id) ?? body.errors.map(({ path }) => path);
  };
  expect(await people('&groupBy=properties.plan&group=null&period=1')).toEqual(['cem']);
  expect(await people('&groupBy=properties.plan&group="free"&by=organization')).toEqual([]);
  expect(await people('&by=organization')).toEqual(['bolt']);
  expect(await people('&groupBy=properties.plan')).toEqual(['group']);
});

test('the return event is the same as the first unless given, and any event makes a cohort unless given', async () => {
  expect(await cohorts('event=signed_up&periods=3')).toEqual([
    ['03-02', 1, [1, 0, 0]],
    ['03-04', 1, [1, 0, 1]],
  ]);
  expect(await cohorts('periods=3')).toEqual([
    ['03-02', 2, [2, 1, 0]],
    ['03-04', 1, [1, 0, 1]],
  ]);
});

test('intervals are local: a late evening in UTC is the next day in Berlin', async () => {
  expect(await cohorts('event=signed_up&periods=3&timeZone=Europe/Berlin')).toEqual([
    ['03-01', 1, [1, 0, 0]],
    ['03-04', 1, [1, 1, 0]],
  ]);
});

test('events outside the range neither begin a cohort nor are returns, and empty cohorts are there', async () => {
  const range = 'startDate=2026-03-03T12:00:00Z&endDate=2026-03-05';
  expect(await retention(`${range}&event=signed_up&periods=2&timeZone=asia/kathmandu`)).toEqual({
    interval: 'day',
    timeZone: 'Asia/Kathmandu',
    periods: 2,
    cohorts: [
      { start: '2026-03-02T18:15:00.000Z', size: 0, returned: [0, 0] },
      { start: '2026-03-03T18:15:00.000Z', size: 0, returned: [0, 0] },
      { start: '2026-03-04T18:15:00.000Z', size: 1, returned: [1, 0] },
      { start: '2026-03-05T18:15:00.000Z', size: 0, returned: [0, 0] },
    ],
    startDate: '2026-03-03T12:00:00.000Z',
    endDate: '2026-03-05T23:59:59.999Z',
    complete: true,
    exact: true,
  });
});

test('as many cohorts as a report may have', async () => {
  const range = 'startDate=2012-06-25&endDate=2026-03-03';
  expect((await retention(`${range}&event=signed_up`)).cohorts).toHaveLength(5_000);
  const { status, body } = await query.get('/events/retention?startDate=2012-06-24&endDate=2026-03-03');
  expect([status, body.errors]).toEqual([
    400,
    [expect.objectContaining({ path: 'interval', code: 'too_many', message: expect.stringContaining('5000') })],
  ]);
});

test.each([
  ['', ['startDate']],
  ['startDate=2010-01-01&endDate=2026-03-01&periods=0', ['interval', 'periods']],
  ['startDate=2026-03-02&endDate=2026-03-01&interval=hour&periods=61', ['interval', 'periods', 'startDate']],
  ['startDate=2026-03-01&periods=0&timeZone=Berlin&returnEvent=', ['periods', 'returnEvent', 'timeZone']],
  ['startDate=2026-03-01&by=team&returnEvent[exists]=true&groupBy=user.plan', ['by', 'groupBy', 'returnEvent[exists]']],
  ['startDate=2026-03-01&timeZone=%2B01:00&weekStart=Monday', ['timeZone', 'weekStart']],
])('refuses %s', async (parameters, paths) => {
  const { status, body } = await query.get(`/events/retention?${parameters}`);
  expect([status, body.code]).toEqual([400, 'invalid_request']);
  expect(body.errors.map(({ path }) => path).sort()).toEqual([...paths].sort());
});

test('responses and parameters are as documented', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  for (const url of ['/events/retention?startDate=2026-03-02&event[in]=signed_up,opened']) {
    const response = await query.app.inject({ url, headers: { authorization: 'Bearer a' } });
    expect(response.statusCode).toBe(200);
    expect(checker.errorsOfResponse('GET /events/retention', response)).toBeUndefined();
  }
  const parameters = checker.operations.get('GET /events/retention')?.value['parameters'] as {
    in?: string;
    name?: string;
  }[];
  expect(parameters.filter((one) => one.in === 'query').map(({ name }) => name)).toEqual([
    ...Object.keys(retentionParameters),
    'properties',
    'context',
    'traits',
    'userProperties',
    'organizationProperties',

    'operators',
  ]);
});

test('cohorts of weeks begin on the day of weekStart', async () => {
  const starts = async (weekStart: string) => {
    const { body } = await query.get(
      `/events/retention?startDate=2026-03-04&endDate=2026-03-04&interval=week${weekStart}`,
    );
    return (body as unknown as { cohorts: { start: string }[] }).cohorts.map(({ start }) => start);
  };
  expect(await starts('&weekStart=sunday')).toEqual(['2026-03-01T00:00:00.000Z']);
  expect(await starts('')).toEqual(['2026-03-02T00:00:00.000Z']);
});

test('retention that runs out of its time says so, and has no cohorts', async () => {
  const hurried = await startQuery(inject('clickhouseUrl'), {}, outOfTime);
  try {
    await storeMany(hurried, 'a', 1_000);
    const url = `/events/retention?startDate=2026-03-01&endDate=2026-03-31&interval=week&${SLOW_FILTER}`;
    const { status, body } = await hurried.get(url);
    expect([status, body]).toEqual([200, expect.objectContaining({ cohorts: [], complete: false })]);
  } finally {
    await hurried.stop();
  }
});

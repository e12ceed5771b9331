import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { outOfTime, SLOW_FILTER, storeMany } from '../../testing/load.ts';
import { allPeople } from '../../testing/people.ts';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import { funnelPeopleParameters } from '../funnel/funnel-parameters.ts';
import { retentionPeopleParameters } from '../retention/retention-parameters.ts';

let query: QueryService;

const START_MS = Date.UTC(2026, 2, 1);
const DAY_MS = 86_400_000;
const DAYS = 'startDate=2026-03-01&endDate=2026-03-31';
const FUNNEL = `/events/funnel/people?steps=a,b&${DAYS}`;
const RETENTION = `/events/retention/people?event=a&returnEvent=b&${DAYS}`;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  const did = (userId: string, event: string, days: number, groupId = '') =>
    anEvent({ userId, event, groupId, timestampMs: START_MS + days * DAY_MS });
  await query.store('a', [
    ...['ada', '🙂', 'שלום', "o'neill"].map((id) => did(id, 'a', 0, 'acme')),
    ...['ada', '🙂'].map((id) => did(id, 'b', 1, 'acme')),
    did('', 'a', 0),
  ]);
  await query.store('b', [did('old', 'a', -26_000), did('old', 'b', -25_999)]);
});
afterAll(() => query.stop());

const idsOf = async (url: string) => (await allPeople(query, url)).map(({ id }) => id);

test('people are listed by the bytes of their identifiers, who completed a step and who dropped out before it', async () => {
  expect(await idsOf(`${FUNNEL}&step=1`)).toEqual(['ada', "o'neill", 'שלום', '🙂']);
  expect(await idsOf(`${FUNNEL}&step=2`)).toEqual(['ada', '🙂']);
  expect(await idsOf(`${FUNNEL}&step=2&dropped=true`)).toEqual(["o'neill", 'שלום']);
  expect(await idsOf(`${FUNNEL}&step=2&by=organization`)).toEqual(['acme']);
});

test('the users of a cohort are listed, and those who came back', async () => {
  expect(await idsOf(`${RETENTION}&cohort=2026-03-01`)).toEqual(['ada', "o'neill", 'שלום', '🙂']);
  expect(await idsOf(`${RETENTION}&cohort=2026-03-01T23:59:59Z&period=1`)).toEqual(['ada', '🙂']);
  expect(await idsOf(`${RETENTION}&cohort=2026-03-01&period=2`)).toEqual([]);
  // The range ends before so many intervals.
  expect(await idsOf(`${RETENTION}&cohort=2026-03-31&period=11`)).toEqual([]);
});

test('a response has the times of each, and the range that was applied', async () => {
  const dates = { startDate: '2026-03-01T00:00:00.000Z', endDate: '2026-03-31T23:59:59.999Z' };
  const rest = { limit: 1, nextCursor: expect.any(String), ...dates, complete: true, exact: true };
  const startedAt = '2026-03-01T00:00:00.000Z';
  expect((await query.get(`${FUNNEL}&step=2&limit=1`)).body).toEqual({
    results: [{ id: 'ada', startedAt, reachedAt: '2026-03-02T00:00:00.000Z' }],
    ...rest,
  });
  expect((await query.get(`${RETENTION}&cohort=2026-03-01&limit=1`)).body).toEqual({
    results: [{ id: 'ada', startedAt }],
    ...rest,
  });
});

test('there are people before 1970, in cohorts that begin before the first time', async () => {
  const { body } = await query.get(
    '/events/retention?startDate=1900-01-01&endDate=1960-01-01&interval=month&timeZone=Europe/Berlin',
    'b',
  );
  const cohorts = (body as unknown as { cohorts: { start: string; size: number }[] }).cohorts;
  expect(cohorts[0]?.start).toMatch(/^1899/);
  const url = (start = '') =>
    `/events/retention/people?startDate=1900-01-01&endDate=1960-01-01&interval=month&timeZone=Europe/Berlin&cohort=${start}`;
  const filled = cohorts.find(({ size }) => size > 0);
  expect((await allPeople(query, url(filled?.start), { workspace: 'b' })).map(({ id }) => id)).toEqual(['old']);
  expect(await allPeople(query, url(cohorts[0]?.start), { workspace: 'b' })).toEqual([]);
});

test('all pages of a range without an end have the end of the first one', async () => {
  const first = await query.get('/events/funnel/people?steps=a,b&startDate=2026-03-01&step=1&limit=3');
  const url = `/events/funnel/people?steps=a,b&startDate=2026-03-01&step=1&cursor=${first.body.nextCursor}`;
  const { body } = await query.get(url);
  expect([body['endDate' as never], body.results.length]).toEqual([first.body['endDate' as never], 1]);
});

test('a cursor belongs to its route, workspace and parameters, whose order does not matter; the limit may change', async () => {
  const { nextCursor } = (await query.get(`${FUNNEL}&step=1&limit=1`)).body;
  const statusOf = async (url: string, workspace = 'a') =>
    (await query.get(`${url}&cursor=${nextCursor}`, workspace)).status;
  expect(await statusOf(`${FUNNEL}&step=1&limit=3`)).toBe(200);
  expect(await statusOf(`/events/funnel/people?step=1&${DAYS}&steps=a,b`)).toBe(200);
  expect(await statusOf(`${FUNNEL}&step=2`)).toBe(400);
  expect(await statusOf(`${FUNNEL}&step=1`, 'b')).toBe(400);
  expect(await statusOf(`${RETENTION}&cohort=2026-03-01`)).toBe(400);
  const { status, body } = await query.get(`${FUNNEL}&step=1&cursor=x`);
  expect([status, body.errors]).toEqual([400, [expect.objectContaining({ path: 'cursor', code: 'invalid' })]]);
});

test.each([
  ['', ['startDate', 'step', 'steps']],
  ['steps=a,b&startDate=2026-03-01', ['step']],
  ['steps=a,b&startDate=2026-03-01&step=0&dropped=yes&limit=x', ['dropped', 'limit', 'step']],
  ['steps=a,b&startDate=2026-03-01&step=3', ['step']],
  ['steps=a,b&startDate=2026-03-01&step=3&dropped=true', ['step']],
  ['steps=a,b&startDate=2026-03-01&step=1&dropped=true', ['dropped']],
  ['steps=a,b&startDate=2026-03-01&step=1&groupBy=event', ['group']],
  ['steps=a,b&startDate=2026-03-01&step=1&group=1', ['groupBy']],
  ['steps=a,b&startDate=2026-03-01&step=1&groupBy=type&group=track', ['group']],
  ['steps=a,b&startDate=2026-03-01&step=1&groupBy=userId&group=12', ['group']],
  [
    'steps=a&startDate=never&step=9&within=7w&cohort=1&step2.properties.x=1',
    ['cohort', 'startDate', 'steps', 'within'],
  ],
])('refuses people of a funnel with %s', async (parameters, paths) => {
  const { status, body } = await query.get(`/events/funnel/people?${parameters}`);
  expect([status, body.code]).toEqual([400, 'invalid_request']);
  expect(body.errors.map(({ path }) => path).sort()).toEqual([...paths].sort());
});

test.each([
  ['', ['cohort', 'startDate']],
  ['startDate=2026-03-01&endDate=2026-03-31&cohort=2026-02-28', ['cohort']],
  ['startDate=2026-03-01&endDate=2026-03-31&cohort=2026-04-01', ['cohort']],
  ['startDate=2026-03-01&cohort=today&period=-1&step=1', ['cohort', 'period', 'step']],
  ['startDate=2026-03-01&cohort=2026-03-01&period=12', ['period']],
  ['startDate=2026-03-01&cohort=2026-03-01&period=3&periods=3&interval=hour', ['interval', 'period']],
  ['startDate=2026-03-02&endDate=2026-03-01&cohort=2026-03-09&periods=x', ['periods', 'startDate']],
])('refuses people of retention with %s', async (parameters, paths) => {
  const { status, body } = await query.get(`/events/retention/people?${parameters}`);
  expect([status, body.code]).toEqual([400, 'invalid_request']);
  expect(body.errors.map(({ path }) => path).sort()).toEqual([...paths].sort());
});

test('responses and parameters are as documented', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  for (const [path, url, own, filters] of [
    ['/events/funnel/people', `${FUNNEL}&step=1`, funnelPeopleParameters, ['stepFilters', 'stepSegments']],
    ['/events/retention/people', `${RETENTION}&cohort=2026-03-01`, retentionPeopleParameters, []],
  ] as const) {
    const response = await query.app.inject({ url, headers: { authorization: 'Bearer a' } });
    expect(response.statusCode).toBe(200);
    expect(checker.errorsOfResponse(`GET ${path}`, response)).toBeUndefined();
    const parameters = checker.operations.get(`GET ${path}`)?.value['parameters'] as { in?: string; name?: string }[];
    expect(parameters.filter((one) => one.in === 'query').map(({ name }) => name)).toEqual([
      ...Object.keys(own),
      ...['properties', 'context', 'traits', 'userProperties', 'organizationProperties'],
      ...filters,
      'operators',
    ]);
  }
});

test('people whose query runs out of its time are not known, and the response says so', async () => {
  const hurried = await startQuery(inject('clickhouseUrl'), {}, outOfTime);
  try {
    await storeMany(hurried, 'a', 1_000);
    for (const url of [
      `/events/funnel/people?steps=e,e&step=1&${DAYS}&${SLOW_FILTER}`,
      `/events/retention/people?cohort=2026-03-01&${DAYS}&${SLOW_FILTER}`,
    ]) {
      const { status, body } = await hurried.get(url);
      expect([status, body]).toEqual([
        200,
        expect.objectContaining({ results: [], nextCursor: null, complete: false }),
      ]);
    }
  } finally {
    await hurried.stop();
  }
});

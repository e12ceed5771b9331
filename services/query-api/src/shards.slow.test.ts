import { randomUUID } from 'node:crypto';
import { eventually } from '@sluice/shared/testing/eventually';
import fc from '@sluice/shared/testing/fast-check';
import { expect, test } from 'vitest';
import { ORDER_FIELDS } from './records/events/event-columns.ts';
import type { TestEvent, TestResponse } from './testing/query-service.ts';
import {
  DAY_MS,
  EXPIRING,
  KEPT_FROM_MS,
  prepareShards,
  ranges,
  START_MS,
  sharded,
  single,
  someEvents,
  storeEvents,
  streams,
  USERS,
} from './testing/rows-on-shards.ts';
import { expectEvents, PATIENCE } from './testing/streams.ts';

const WORKSPACES = ['a', EXPIRING] as const;

prepareShards('one server each', WORKSPACES);

const eventsUrl = fc
  .record({
    field: fc.constantFrom(...ORDER_FIELDS),
    direction: fc.constantFrom('ASC', 'DESC'),
    limit: fc.constantFrom(0, 7, 40, 1_000),
    offset: fc.constantFrom(0, 0, 3, 50),
    filters: fc.subarray(
      [
        'identity=linked',
        'event=opened',
        'userId=cem',
        'userId=ada',
        'groupId=acme',
        'properties.plan=pro',
        'properties.n__gt=1',
      ],
      { maxLength: 3 },
    ),
    time: fc.constantFrom('', `startDate=${new Date(START_MS + DAY_MS).toISOString()}`, 'endDate=2026-03-01'),
  })
  .map(({ field, direction, limit, offset, filters, time }) =>
    [`/events?orderByField=${field}&orderByDirection=${direction}&limit=${limit}&offset=${offset}`, ...filters, time]
      .filter((parameter) => parameter !== '')
      .join('&'),
  );

const entitiesUrl = fc
  .record({
    path: fc.constantFrom('/users', '/organizations'),
    limit: fc.constantFrom(0, 1, 3, 1_000),
    order: fc.constantFrom('', 'orderByField=firstSeenAt', 'orderByField=lastSeenAt&orderByDirection=DESC'),
    filter: fc.constantFrom(
      '',
      'properties.plan=pro',
      'properties.plan=free',
      'properties.n=1',
      'properties.gone__exists=false',
    ),
  })
  .map(({ path, limit, order, filter }) => `${path}?limit=${limit}&${order}${filter && `&${filter}`}`);

const entityUrl = fc
  .tuple(fc.constantFrom('/users', '/organizations'), fc.constantFrom(...USERS, 'acme', 'ida', 'nobody'))
  .map(([path, id]) => `${path}/${encodeURIComponent(id)}`);

const membershipsUrl = fc
  .record({
    path: fc.constantFrom(
      ...USERS.map((id) => `/users/${encodeURIComponent(id)}/organizations`),
      '/organizations/acme/users',
      '/organizations/bolt/users',
      '/organizations/nobody/users',
    ),
    limit: fc.constantFrom(0, 1, 3, 1_000),
  })
  .map(({ path, limit }) => `${path}?limit=${limit}`);

const DATES = 'startDate=2026-02-27&endDate=2026-03-10';
const reportsUrl = fc.constantFrom(
  `/events/funnel?steps=opened,Closed&${DATES}&groupBy=groupId`,
  `/events/funnel?steps=opened,opened,${encodeURIComponent('öffnet')}&by=organization&${DATES}&step2.properties.n=1`,
  `/events/funnel/people?steps=opened,Closed&${DATES}&step=2&dropped=true`,
  `/events/funnel/people?steps=opened,opened&by=organization&${DATES}&step=1&groupBy=type&group=%22track%22`,
  `/events/retention?interval=day&periods=5&${DATES}`,
  `/events/funnel?steps=opened,Closed&${DATES}&identity=linked&groupBy=user.properties.plan`,
  `/events/funnel/people?steps=opened,Closed&${DATES}&identity=linked&step=1&user.properties.plan=pro`,
  `/events/retention?interval=day&periods=5&${DATES}&identity=linked`,
  '/identities?userId=cem',
  '/identities/conflicts',
  `/events/retention/people?interval=week&cohort=2026-03-01&period=1&${DATES}`,
  `/events/retention?event=opened&returnEvent[ne]=opened&timeZone=Asia/Kathmandu&periods=5&${DATES}`,
);
const menuUrl = fc
  .record({
    menu: fc.constantFrom(
      'names?',
      'properties?',
      ...['event', 'userId', 'properties.n'].map((of) => `values?property=${of}`),
    ),
    filter: fc.constantFrom('', 'event=opened', 'userId=ada', 'properties.plan=pro', 'type=track', 'prefix=o'),
    time: fc.constantFrom('', `startDate=${new Date(START_MS + DAY_MS + 1).toISOString()}`, 'endDate=2026-03-01'),
  })
  .map(({ menu, filter, time }) => `/events/${menu}&${filter}&${time}`);

const activityUrl = entityUrl.map((url) => `${url}/activity`);
const seriesUrl = fc
  .record({
    measure: fc.constantFrom('count', 'users', 'organizations', 'sum:properties.n', 'p50:properties.n'),
    groupBy: fc.constantFrom('', 'event', 'userId', 'properties.plan,groupId'),
    groups: fc.constantFrom(1, 3),
    filter: fc.constantFrom('', 'event[ne]=opened', 'groupId=acme', 'identity=linked', 'identity=linked&userId=cem'),
  })
  .map(({ measure, groupBy, groups, filter }) =>
    [
      `/events/series?startDate=2026-02-01&endDate=2026-03-31&timeZone=Europe/Berlin&compare=previous&measure=${measure}`,
      groupBy && `groupBy=${groupBy}&groups=${groups}`,
      filter,
    ]
      .filter((parameter) => parameter !== '')
      .join('&'),
  );

function withoutRequestId(response: TestResponse): TestResponse {
  return { ...response, text: response.text.replace(/"requestId":"[^"]*"/, '') };
}

/** How many pages of a list are read. */
const PAGES_MAX = 3;

/** Follows the cursors of a list, and expects the same pages from both services. */
async function expectSamePages(url: string, workspace: string): Promise<void> {
  let cursor: string | null | undefined = '';
  for (let pages = 0; pages < PAGES_MAX && typeof cursor === 'string'; pages += 1) {
    const page: string = cursor === '' ? url : `${url.replace(/&offset=\d+/, '')}&cursor=${encodeURIComponent(cursor)}`;
    const [{ body, ...expected }, ...others] = (
      await Promise.all([single, sharded].map((service) => service.get(page, workspace)))
    ).map(withoutRequestId) as [TestResponse, ...TestResponse[]];
    for (const { status, text } of others) expect({ page, status, text }).toEqual({ page, ...expected });
    cursor = body.nextCursor;
  }
}

test('deletions hide events and users in what the queries below return', async () => {
  const { body } = await single.get('/events?limit=0');
  expect(body.total).toBeGreaterThan(50);
  expect(body.total).toBeLessThan(140);
  const users = await single.get('/users?limit=1000');
  const ids = users.body.results.map(({ foreignId }) => foreignId);
  expect(ids).toEqual(['acme', 'bolt', 'cem', 'eve', 'fay', 'ida', 'joe', "o'\0h"]);
});

test('of one workspace, events have expired in what the queries below return', async () => {
  const { body } = await single.get('/events?limit=1000', EXPIRING);
  expect(body.total).toBe(body.results.length);
  expect(body.total).toBeGreaterThan(10);
  const times = body.results.map(({ timestamp }) => Date.parse(String(timestamp)));
  expect(Math.min(...times)).toBe(KEPT_FROM_MS);
});

test('every query of two ranges returns what one server returns with the same rows', async () => {
  const url = fc.oneof(
    { weight: 3, arbitrary: eventsUrl },
    entitiesUrl,
    entityUrl,
    membershipsUrl,
    reportsUrl,
    seriesUrl,
    menuUrl,
    activityUrl,
  );
  await fc.assert(
    fc.asyncProperty(url, fc.constantFrom(...WORKSPACES), (query, workspace) => expectSamePages(query, workspace)),
    { numRuns: 12, endOnFailure: true },
  );
});

test('the books are the sums of both ranges, and an hour is audited once it was on each server', async () => {
  const hour = START_MS / 1_000;
  for (const [index, [shard]] of ranges.entries()) {
    const id = randomUUID();
    const ofAudit = { workspace_id: 'a', hour, kind: 'events', audit_id: id };
    const until = hour + (index + 1) * 3_600;
    await shard?.insert('audits', [{ id, finished_at: START_MS * 1_000, since: hour, until, shares: 1 }]);
    await shard?.insert('audited_hours', [{ ...ofAudit, accepted: 10 + index, stored: 10, missing: index }]);
    await shard?.insert('audit_differences', [{ ...ofAudit, difference: 'missing', key: `of range ${index}` }]);
  }
  const { body } = await sharded.get(`/audits?startDate=${new Date(START_MS).toISOString()}&interval=month`);
  expect(body).toMatchObject({
    auditedThrough: new Date(START_MS + 3_600_000).toISOString(),
    books: [{ auditedHours: 1, events: { accepted: 21, stored: 20, missing: 1 } }],
    audits: [{ shares: 1 }, { shares: 1 }],
    differences: [{ key: 'of range 1' }],
  });
});

test('a stream follows the order of storage of both ranges, and is resumed after each of its events', async () => {
  const stream = await streams.open('?event[ne]=nothing', { workspace: 'd' });
  const events: TestEvent[] = [];
  for (let batch = 0; batch < 4; batch += 1) {
    const some = someEvents(8);
    await storeEvents('d', some);
    events.push(...some);
  }
  await expectEvents(stream, events);
  const resume = async (id: string, rest: ReadonlySet<string>) => {
    const resumed = await streams.open('', { workspace: 'd', lastEventId: id });
    await eventually(() => resumed.events.length, PATIENCE).toBe(rest.size);
    expect(new Set(resumed.uuids)).toEqual(rest);
  };
  const { uuids } = stream;
  await Promise.all(stream.events.map(({ id }, index) => resume(id, new Set(uuids.slice(index + 1)))));
  await streams.closeAll();
});

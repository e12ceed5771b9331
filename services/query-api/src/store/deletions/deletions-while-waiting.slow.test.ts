import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { Gate, stopTimers } from '../../testing/gate.ts';
import { metric } from '../../testing/load.ts';
import {
  anEvent,
  aRegister,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
} from '../../testing/query-service.ts';
import { readerWith } from '../../testing/reader-with.ts';
import type { ReadRequest } from '../clickhouse-reader.ts';
import { ClickHouseException } from '../read-failures.ts';

/** Queries of all workspaces but `a`. */
function isOfOthers({ params, queryId }: ReadRequest): boolean {
  const { workspace } = params as { readonly workspace: string };
  // Before an export there is a query of its own kind.
  return !['', 'a'].includes(workspace) && !queryId.includes('/event_sizes/');
}

const DELETED_AT_US = Date.UTC(2026, 2, 1, 12) * 1_000;

async function storeAda(query: QueryService): Promise<void> {
  const given = { event: 'ada-did', userId: 'ada', properties: '{"ada":"ada"}', receivedAtUs: DELETED_AT_US - 1 };
  await query.store('a', [anEvent({ ...given, groupId: 'g' }), anEvent({ userId: 'bob', groupId: 'g' })]);
  const seen = { first_seen_at: 1_000, last_seen_at: 2_000, version: DELETED_AT_US - 1 };
  const users = ['ada', 'bob'].map((id) => ({ workspace_id: 'a', kind: 'user', id, ...seen }));
  await query.insert('entities', users);
  await query.insert('entity_properties', [
    {
      workspace_id: 'a',
      kind: 'user',
      id: 'ada',
      property: 'ada',
      register: aRegister(DELETED_AT_US - 1, 'set', '"ada"'),
    },
  ]);
}

async function deleteAda(query: QueryService): Promise<void> {
  const deletion = { workspace_id: 'a', user_id: 'ada', version: DELETED_AT_US };
  await query.insert('user_deletions', [deletion]);
  await query.insert('pending_deletions', [{ ...deletion, stored_at: 1 }]);
}

const DAY = 'startDate=2026-03-01&endDate=2026-03-01';

/** What shows something of every user. */
const ROUTES: readonly string[] = [
  ...[
    '/events?total=exact',
    '/events?limit=0&total=exact',
    '/events?limit=0&total=capped',
    '/events/export?startDate=2026-01-01',
  ],
  ...[`/events/series?interval=day&groupBy=userId&${DAY}`, `/events/series?interval=day&compare=previous&${DAY}`],
  ...[`/events/retention?interval=day&${DAY}`, `/events/funnel?steps=e,f&${DAY}`],
  `/events/retention/people?cohort=2026-03-01&${DAY}`,
  `/events/funnel/people?steps=ada-did,e&step=1&${DAY}`,
  ...['/events/names', '/events/properties', '/events/values?property=userId', '/events/values?property=event'],
  ...['/users', '/users?orderByField=lastSeenAt', '/users/ada', '/users/ada/organizations'],
  // What is asked of the user of an event.
  ...['/events?user.properties.ada=ada&total=exact', '/events/export?startDate=2026-01-01&user.properties.ada=ada'],
  ...['/events?user.lastSeenAt[lt]=2026-03-01&total=exact', '/events/names?user.properties.ada=ada'],
  `/events/series?interval=day&groupBy=user.properties.ada&${DAY}`,
  `/events/retention?interval=day&user.properties.ada=ada&${DAY}`,
  `/events/funnel?steps=e,f&user.properties.ada=ada&${DAY}`,
  '/events/values?property=user.properties.ada',
];

test('what waits for a slot shows no user whose deletion is stored meanwhile', async () => {
  const gate = new Gate(isOfOthers);
  const one = { QUERY_CONNECTIONS_MAX: '1', REPORT_CONNECTIONS_MAX: '1', EXPORT_CONNECTIONS_MAX: '1' };
  const query = await startQuery(inject('clickhouseUrl'), one, gate.wrap);
  onTestFinished(() => query.stop());
  await storeAda(query);
  const holding = [textOf(query, '/events/export?startDate=2026-01-01', 'b')];
  await eventually(() => queries(query, 'running')).toBe(1);
  holding.push(...['/events', '/events/names'].map((url) => textOf(query, url, 'b')));
  await eventually(() => queries(query, 'running')).toBe(3);
  const waiting = ROUTES.map((url) => textOf(query, url));
  await eventually(() => queries(query, 'waiting')).toBeGreaterThanOrEqual(ROUTES.length);
  await deleteAda(query);
  await wait(DELETIONS_FORGOTTEN_MS);
  gate.open();
  await Promise.all(holding);
  const responses = await Promise.all(waiting);
  for (const [index, text] of responses.entries()) expect(text, ROUTES[index]).not.toMatch(/"ada"|ada-did/);
  expect(responses.slice(0, 3).map((text) => JSON.parse(text).total)).toEqual([1, 1, 1]);
});

test('users that are read late are not shown if their deletion was stored since it was looked up', async () => {
  const gate = new Gate(({ queryId }) => queryId.includes('/entities_page/'));
  const query = await startQuery(inject('clickhouseUrl'), { QUERY_TIMEOUT_MS: '60000' }, gate.wrap);
  onTestFinished(() => query.stop());
  await storeAda(query);
  const routes = ['/users', '/users?orderByField=lastSeenAt', '/users/ada'];
  const reading = routes.map((url) => textOf(query, url));
  const lookedUp = () => metric(query, 'sluice_query_duration_seconds_count{kind="entity_deletions",outcome="ok"}');
  await eventually(lookedUp).toBe(routes.length);
  await deleteAda(query);
  await wait(DELETIONS_FORGOTTEN_MS);
  gate.open();
  for (const [index, text] of (await Promise.all(reading)).entries())
    expect(text, routes[index]).not.toContain('"ada"');
});

test('a query that is run again in small blocks hides what was deleted since the first run', async () => {
  let failures = 0;
  const query = await startQuery(inject('clickhouseUrl'), {}, (reader) =>
    readerWith(reader, {
      async *read(request) {
        if (request.queryId.includes('/events_page/') && failures === 0) {
          failures += 1;
          await deleteAda(query);
          await wait(DELETIONS_FORGOTTEN_MS);
          throw new ClickHouseException(241, 'Query memory limit exceeded');
        }
        yield* reader.read(request);
      },
    }),
  );
  onTestFinished(() => query.stop());
  await storeAda(query);
  expect(await textOf(query, '/events?total=none&orderByField=event')).not.toContain('ada-did');
  expect(failures).toBe(1);
});

test('an activity that waited for its report is not that of a user who was deleted meanwhile', async () => {
  const gate = new Gate(({ queryId }) => queryId.includes('/activity/'));
  const query = await startQuery(inject('clickhouseUrl'), {}, gate.wrap);
  onTestFinished(() => query.stop());
  await storeAda(query);
  const reading = query.get('/users/ada/activity');
  await eventually(() => metric(query, 'sluice_queries{pool="reports",state="running"}')).toBe(1);
  await deleteAda(query);
  await wait(DELETIONS_FORGOTTEN_MS);
  gate.open();
  expect((await reading).status).toBe(404);
});

test('the later pieces of a large user are not read any more once the user is deleted', async () => {
  let pieces = 0;
  const query = await startQuery(inject('clickhouseUrl'), {}, (reader) =>
    readerWith(reader, {
      async *read(request) {
        if ('keys' in request.params) {
          pieces += 1;
          if (pieces === 2) {
            await deleteAda(query);
            await wait(DELETIONS_FORGOTTEN_MS);
          }
        }
        yield* reader.read(request);
      },
    }),
  );
  onTestFinished(() => query.stop());
  await storeAda(query);
  const large = Array.from({ length: 30 }, (_, index) => ({
    ...{ workspace_id: 'a', kind: 'user', id: 'ada', property: `p${String(index).padStart(2, '0')}` },
    register: aRegister(DELETED_AT_US - 1, 'set', JSON.stringify('x'.repeat(240_000))),
  }));
  for (const register of large) await query.insert('entity_properties', [register]);
  expect(await textOf(query, '/users/ada')).not.toContain('"p29"');
  expect(pieces).toBeGreaterThan(1);
});

test('a report that only waited is told to come again', async () => {
  const gate = new Gate(isOfOthers);
  const query = await startQuery(inject('clickhouseUrl'), { REPORT_CONNECTIONS_MAX: '1' }, gate.wrap);
  onTestFinished(() => query.stop());
  const other = query.get('/events/names', 'b');
  await eventually(() => queries(query, 'running')).toBe(1);
  const pass = stopTimers();
  const urls = [
    `/events/series?interval=day&${DAY}`,
    `/events/retention?interval=day&${DAY}`,
    `/events/funnel?steps=e,f&${DAY}`,
    '/events/names',
  ];
  const reports = urls.map((url) => query.get(url));
  await eventually(() => queries(query, 'waiting')).toBe(urls.length);
  pass(query.config.QUERY_TIMEOUT_MS);
  for (const { status, body } of await Promise.all(reports)) expect([status, body.code]).toEqual([503, 'overloaded']);
  gate.open();
  await other;
});

async function textOf({ app }: QueryService, url: string, workspace = 'a'): Promise<string> {
  const { statusCode, body } = await app.inject({ url, headers: { authorization: `Bearer ${workspace}` } });
  expect([200, 404], `${url}: ${body}`).toContain(statusCode);
  return body;
}

/** How many queries run, or wait, in all pools. */
async function queries(query: QueryService, state: 'running' | 'waiting'): Promise<number> {
  const { body } = await query.app.inject('/metrics');
  const values = [...body.matchAll(new RegExp(`^sluice_queries{.*state="${state}".*} (\\d+)$`, 'gm'))];
  return values.reduce((sum, [, value]) => sum + Number(value), 0);
}

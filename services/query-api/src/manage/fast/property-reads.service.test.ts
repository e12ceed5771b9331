import { createLogger } from '@sluice/shared/base/log';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { declareFast, fillFast } from '../../testing/fast-properties.ts';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import { send } from '../../testing/views.ts';
import { PropertyReads } from './property-reads.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
});
afterAll(() => query.stop());

const RANGE = 'startDate=2026-01-01&endDate=2026-04-01';

interface Proposed {
  readonly name: string;
  readonly reads: number;
  readonly bytes: number;
  readonly mayBeFast: boolean;
  readonly isFast: boolean;
}

const proposed = async (workspace: string) =>
  (await send(query, 'GET', '/properties/fast/proposed', undefined, workspace)).body['properties'] as Proposed[];

async function read(workspace: string, ...reports: readonly string[]): Promise<void> {
  for (const report of reports) {
    const { status, text } = await query.get(`/events/${report}&${RANGE}`, workspace);
    expect(status, text).toBe(200);
  }
}

test('a workspace sees what its own reports have read from the text, and which of that may be fast or is', async () => {
  const properties = '{"plan":"pro","amount":5,"order":{"total":7}}';
  for (const workspace of ['a', 'b']) await query.store(workspace, [anEvent({ properties }), anEvent({ properties })]);
  await read(
    'a',
    'series?interval=day&groupBy=properties.plan&measure=sum:properties.amount',
    'funnel?steps=e,e&properties.plan=pro',
    'retention?groupBy=properties.plan&properties.order.total[gte]=1',
    // These read none, and those of users and organizations are not of events.
    'series?interval=day&groupBy=event',
    'series?interval=day&groupBy=user.properties.country&context.page=x',
  );
  const found = await proposed('a');
  expect(found.map(({ name, mayBeFast, isFast }) => ({ name, mayBeFast, isFast }))).toEqual([
    { name: 'plan', mayBeFast: true, isFast: false },
    ...found.slice(1).map(({ name }) => ({ name, mayBeFast: name === 'amount', isFast: false })),
  ]);
  expect(found.map(({ name }) => name).sort()).toEqual(['amount', 'order.total', 'plan']);
  const of = (name: string) => found.find((one) => one.name === name);
  expect([of('plan')?.reads, of('amount')?.reads, of('order.total')?.reads]).toEqual([3, 1, 1]);
  expect(found.every(({ bytes }) => bytes > 0)).toBe(true);
  expect(await proposed('b')).toEqual([]);
  await send(query, 'PUT', '/properties/fast', { properties: ['plan'] }, 'admin-a');
  expect((await proposed('a')).map(({ isFast }) => isFast)).toEqual([true, false, false]);
});

test('what is read of a column is not proposed', async () => {
  await declareFast(query, 'c', ['plan']);
  await query.store('c', [anEvent({ properties: '{"plan":"pro","amount":5}' })]);
  await fillFast(query, 'c', ['plan']);
  await read('c', 'series?interval=day&groupBy=properties.plan&properties.amount=5');
  expect((await proposed('c')).map(({ name }) => name)).toEqual(['amount']);
});

const logger = createLogger('test', 'silent');
const DAY_MS = 86_400_000;

const aProcess = (now: () => number = Date.now) => new PropertyReads(query.clickHouse, logger, now);

test('counts of several processes are added up, outlive them, and are those of seven days', async () => {
  // Of a day that is long over ClickHouse removes the rows.
  const start = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
  const clock = { now: start };
  const [one, other] = [aProcess(() => clock.now), aProcess(() => clock.now)];
  one.note('sum', ['plan', 'amount'], 1_000);
  await one.store();
  one.note('sum', ['plan'], 100);
  other.note('sum', ['plan'], 10);
  other.note('others', ['secret'], 10);
  const sums = [
    { name: 'plan', reads: 3, bytes: 610 },
    { name: 'amount', reads: 1, bytes: 500 },
  ];
  await Promise.all([one.store(), other.store()]);
  for (const process of [one, other, aProcess(() => clock.now)]) expect(await process.of('sum')).toEqual(sums);
  clock.now = start + 2 * DAY_MS;
  one.note('sum', ['plan'], 1);
  expect(await one.of('sum')).toEqual([{ name: 'plan', reads: 4, bytes: 611 }, sums[1]]);
  // What was not stored is not on the disk; what was is, to the end of the week.
  clock.now = start + 6 * DAY_MS;
  expect(await other.of('sum')).toEqual(sums);
  clock.now = start + 7 * DAY_MS;
  expect(await other.of('sum')).toEqual([]);
});

test('however many properties are asked for, there is one row for a day, with those for which most was read', async () => {
  const reads = aProcess();
  for (let turn = 0; turn < 3; turn += 1) {
    for (let index = 0; index < 1_000; index += 1) reads.note('many', [`p${turn}-${index}`], index);
    reads.note('many', ['large'], 1_000_000);
    await reads.store();
  }
  const sql = `SELECT length(names) AS kept, has(names, 'large') AS large FROM console_property_reads FINAL
    WHERE workspace_id = 'many'`;
  const rows = await query.clickHouse.query({ query: sql, format: 'JSONEachRow' });
  expect(await rows.json()).toEqual([{ kept: 32, large: 1 }]);
  expect((await reads.of('many'))[0]).toEqual({ name: 'large', reads: 3, bytes: 3_000_000 });
});

test('how far the columns of months are follows from what is declared now', async () => {
  const months = async () => (await send(query, 'GET', '/properties/fast/progress', undefined, 'd')).body['months'];
  expect(await months()).toEqual([]);
  const event = (month: number) => anEvent({ timestampMs: Date.UTC(2026, month, 5), properties: '{"plan":1}' });
  await query.store('d', [event(0), event(0), event(1)]);
  expect(await months()).toEqual([
    { month: '2026-02', events: 1, filled: 1 },
    { month: '2026-01', events: 2, filled: 2 },
  ]);
  await send(query, 'PUT', '/properties/fast', { properties: ['plan'] }, 'admin-d');
  await fillFast(query, 'd', ['plan'], 'toMonth(timestamp) = 2');
  expect(await months()).toEqual([
    { month: '2026-02', events: 1, filled: 1 },
    { month: '2026-01', events: 2, filled: 0 },
  ]);
});

test('responses are those of the OpenAPI document', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  for (const url of ['/properties/fast/proposed', '/properties/fast/progress']) {
    for (const given of [url, `${url}?limit=1`]) {
      const response = await query.app.inject({ url: given, headers: { authorization: 'Bearer a' } });
      expect([given, response.statusCode]).toEqual([given, given === url ? 200 : 400]);
      expect(checker.errorsOfResponse(`GET ${url}`, response), response.body).toBeUndefined();
    }
  }
});

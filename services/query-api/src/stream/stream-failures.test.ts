import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { NAME_DOTS_MAX, PROPERTY_FILTERS_MAX } from '../limits.ts';
import { metric } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { expectEvents, listenTo, PATIENCE, someEvents, type TestStreams } from '../testing/streams.ts';

let query: QueryService;
let streams: TestStreams;

beforeEach(async () => {
  query = await startQuery(inject('clickhouseUrl'), {
    STREAM_INTERVAL_MS: '50',
    QUERY_BYTES_READ_MAX: String(1_024 * 1_024),
  });
  streams = await listenTo(query);
});
afterEach(async () => {
  await streams.closeAll();
  await query.stop();
});

const command = (sql: string) => query.clickHouse.command({ query: sql });
const ended = (reason: string) => metric(query, `sluice_stream_ended_total{reason="${reason}"}`);

/** Waits until a look for new events has begun and ended, so that it saw what is stored now. */
async function untilLookedAgain(): Promise<void> {
  const looks = () => metric(query, 'sluice_query_duration_seconds_count{kind="stream_newest",outcome="ok"}');
  const before = await looks();
  await expect.poll(async () => (await looks()) > before + 1 || (await isIdle()), PATIENCE).toBe(true);
}

const isIdle = async () => (await metric(query, 'sluice_stream_listeners')) === 0;

test('a client whose events cannot be read within the budget is disconnected; the others of the same query go on', async () => {
  const [costly, other] = [await streams.open(), await streams.open('', { workspace: 'b' })];
  const text = randomBytes(75_000).toString('base64');
  await query.store('a', someEvents(20, { properties: JSON.stringify({ text }) }));
  const event = anEvent();
  await query.store('b', [event]);
  await expectEvents(other, [event]);
  await expect.poll(() => ended('failed'), PATIENCE).toBe(1);
  await costly.ended;
  expect(await metric(query, 'sluice_stream_listeners')).toBe(1);
});

test('filters that are too long for one query are read by several', async () => {
  const path = '.b'.repeat(NAME_DOTS_MAX);
  const filters = (client: number) =>
    Array.from({ length: PROPERTY_FILTERS_MAX }, (_, index) => `properties.${index}${path}[ne]=${client}`).join('&');
  const clients = await Promise.all([1, 2, 3].map((client) => streams.open(`?${filters(client)}`)));
  const event = anEvent();
  await query.store('a', [event]);
  for (const client of clients) await expectEvents(client, [event]);
});

test('streams go on when ClickHouse has nothing left of the newest blocks', async () => {
  const stream = await streams.open();
  const before = someEvents(3);
  for (const event of before) await query.store('a', [event]);
  await expectEvents(stream, before);
  await command('TRUNCATE TABLE events');
  await untilLookedAgain();
  const after = someEvents(2);
  for (const event of after) await query.store('a', [event]);
  await expectEvents(stream, [...before, ...after]);
});

test('when ClickHouse counts its blocks anew, streams end, and their positions are refused', async () => {
  const stream = await streams.open();
  for (const event of someEvents(20)) await query.store('a', [event]);
  await expect.poll(() => stream.events.length, PATIENCE).toBe(20);
  await command('CREATE TABLE anew AS events');
  await command('EXCHANGE TABLES anew AND events');
  let isEnded = false;
  void stream.ended.then(() => {
    isEnded = true;
  });
  for (let stored = 0; stored < 10 && !isEnded; stored += 1) {
    await query.store('a', someEvents(1));
    await untilLookedAgain();
  }
  expect(await ended('position_lost')).toBe(1);
  const resumed = await query.get(`/events/stream?after=${stream.lastEventId}`);
  expect([resumed.status, resumed.body.code]).toEqual([410, 'position_lost']);
});

test('no stream begins before all migrations are applied: merges would change its order', async () => {
  await command('ALTER TABLE schema_migrations DELETE WHERE number = 15');
  const { status, body } = await query.get('/events/stream');
  expect([status, body.code]).toEqual([503, 'store_unavailable']);
});

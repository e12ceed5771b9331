import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { EventStream, type StreamOptions } from '../testing/event-stream.ts';
import { metric } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery, type TestEvent } from '../testing/query-service.ts';
import { expectedRecord } from '../testing/reference.ts';

const PATIENCE = { timeout: 60_000, interval: 10 };
const DAY_MS = 86_400_000;

let query: QueryService;
const streams: EventStream[] = [];

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { STREAM_INTERVAL_MS: '50' });
  await query.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => query.stop());

afterEach(async () => {
  for (const stream of streams.splice(0)) stream.close();
  await expect.poll(() => metric(query, 'sluice_stream_listeners'), PATIENCE).toBe(0);
});

/** Connects a client that is disconnected after its test. */
async function listen(parameters = '', options?: StreamOptions): Promise<EventStream> {
  const stream = await EventStream.open(query, `/events/stream${parameters}`, options);
  streams.push(stream);
  expect(stream.response.statusCode).toBe(200);
  await expect.poll(() => stream.lastEventId, PATIENCE).toBeDefined();
  return stream;
}

function some(count: number, given: Partial<TestEvent> = {}): TestEvent[] {
  return Array.from({ length: count }, () => anEvent(given));
}

async function expectEvents(stream: EventStream, events: readonly TestEvent[]): Promise<void> {
  await expect.poll(() => stream.events.length, PATIENCE).toBeGreaterThanOrEqual(events.length);
  expect([...stream.uuids].sort()).toEqual(events.map(({ uuid }) => uuid).sort());
}

test('a client gets the events that are stored from now on, as records of GET /events, and no earlier ones', async () => {
  await query.store('a', some(3));
  const stream = await listen();
  const { headers } = stream.response;
  expect([headers['content-type'], headers['cache-control']]).toEqual(['text/event-stream', 'no-store']);
  const events = [anEvent({ properties: '{ "a":\r\n[1,\n2.50],\r"b":null }', userId: 'jane' }), anEvent({ event: 'ö' })];
  await query.store('a', events);
  await expectEvents(stream, events);
  const records = stream.events.map(({ record }) => record);
  expect(records).toEqual(expect.arrayContaining(events.map(expectedRecord)));
});

test('late events are sent too: the stream follows the order of storage', async () => {
  const stream = await listen();
  const events = [0, 400, 30, 2_000].map((days) => anEvent({ timestampMs: Date.UTC(2026, 2, 1) - days * DAY_MS }));
  for (const event of events) await query.store('a', [event]);
  await expectEvents(stream, events);
  expect(stream.uuids).toEqual(events.map(({ uuid }) => uuid));
});

test('each client gets what its filters select in its workspace', async () => {
  const all = await listen();
  const named = await listen('?event=paid&properties.amount[gte]=10');
  const ofUser = await listen('?userId[in]=jane,joe');
  const other = await listen('?event=paid', { workspace: 'b' });
  const events = {
    paid: anEvent({ event: 'paid', properties: '{"amount":12}' }),
    cheap: anEvent({ event: 'paid', properties: '{"amount":2}', userId: 'jane' }),
    opened: anEvent({ event: 'opened', userId: 'joe' }),
  };
  const theirs = anEvent({ event: 'paid', properties: '{"amount":99}', userId: 'jane' });
  await query.store('b', [theirs]);
  await query.store('a', Object.values(events));
  await expectEvents(all, Object.values(events));
  await expectEvents(named, [events.paid]);
  await expectEvents(ofUser, [events.cheap, events.opened]);
  await expectEvents(other, [theirs]);
});

test('a client resumes after any event, by header or parameter, without a gap or a repeat', async () => {
  const stream = await listen();
  const batches = [some(3), some(1, { timestampMs: 1e12 }), some(4), [...some(2), ...some(2, { timestampMs: 1.7e12 })]];
  for (const batch of batches) await query.store('a', batch);
  await expectEvents(stream, batches.flat());
  await query.clickHouse.command({ query: 'OPTIMIZE TABLE events FINAL' });
  for (const [index, { id }] of stream.events.entries()) {
    const rest = stream.uuids.slice(index + 1);
    const resumed = index % 2 === 0 ? await listen(`?after=${id}`) : await listen('', { lastEventId: id });
    await expect.poll(() => resumed.uuids, PATIENCE).toEqual(rest);
  }
});

test('events of deleted users are not sent, and those of users who came back are', async () => {
  const stream = await listen();
  const user = randomUUID();
  const deletion = { workspace_id: 'a', user_id: user, version: 2e15, stored_at: 1 };
  await query.insert('pending_deletions', [deletion]);
  const hidden = anEvent({ userId: user, receivedAtUs: 1e15 });
  const back = anEvent({ userId: user, receivedAtUs: 3e15 });
  const other = anEvent({ userId: 'other' });
  await query.store('a', [hidden, back, other]);
  await expectEvents(stream, [back, other]);
});

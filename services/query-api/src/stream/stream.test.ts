import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { expectedRecord } from '../testing/reference.ts';
import { expectEvents, listenTo, PATIENCE, someEvents, type TestStreams } from '../testing/streams.ts';

const DAY_MS = 86_400_000;

let query: QueryService;
let streams: TestStreams;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { STREAM_INTERVAL_MS: '50' });
  streams = await listenTo(query);
});
afterAll(() => query.stop());
afterEach(() => streams.closeAll());

test('a client gets the events that are stored from now on, as records of GET /events, and no earlier ones', async () => {
  await query.store('a', someEvents(3));
  const stream = await streams.open();
  const { headers } = stream.response;
  expect([headers['content-type'], headers['cache-control']]).toEqual(['text/event-stream', 'no-store']);
  const events = [
    anEvent({ properties: '{ "a":\r\n[1,\n2.50],\r"b":null }', userId: 'jane' }),
    anEvent({ event: 'ö' }),
  ];
  await query.store('a', events);
  await expectEvents(stream, events);
  const records = stream.events.map(({ record }) => record);
  expect(records).toEqual(expect.arrayContaining(events.map(expectedRecord)));
});

test('late events are sent too: the stream follows the order of storage', async () => {
  const stream = await streams.open();
  const events = [0, 400, 30, 2_000].map((days) => anEvent({ timestampMs: Date.UTC(2026, 2, 1) - days * DAY_MS }));
  for (const event of events) await query.store('a', [event]);
  await expectEvents(stream, events);
  expect(stream.uuids).toEqual(events.map(({ uuid }) => uuid));
});

test('each client gets what its filters select in its workspace', async () => {
  const all = await streams.open();
  const named = await streams.open('?event=paid&properties.amount[gte]=10');
  const ofUser = await streams.open('?userId[in]=jane,joe');
  const other = await streams.open('?event=paid', { workspace: 'b' });
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
  const stream = await streams.open();
  const batches = [
    someEvents(3),
    someEvents(1, { timestampMs: 1e12 }),
    someEvents(4),
    [...someEvents(2), ...someEvents(2, { timestampMs: 1.7e12 })],
  ];
  for (const batch of batches) await query.store('a', batch);
  await expectEvents(stream, batches.flat());
  await query.clickHouse.command({ query: 'OPTIMIZE TABLE events FINAL' });
  for (const [index, { id }] of stream.events.entries()) {
    const rest = stream.uuids.slice(index + 1);
    const resumed = index % 2 === 0 ? await streams.open(`?after=${id}`) : await streams.open('', { lastEventId: id });
    await expect.poll(() => resumed.uuids, PATIENCE).toEqual(rest);
  }
});

test('events of deleted users are not sent, and those of users who came back are', async () => {
  const stream = await streams.open();
  const user = randomUUID();
  const deletion = { workspace_id: 'a', user_id: user, version: 2e15, stored_at: 1 };
  await query.insert('pending_deletions', [deletion]);
  const hidden = anEvent({ userId: user, receivedAtUs: 1e15 });
  const back = anEvent({ userId: user, receivedAtUs: 3e15 });
  const other = anEvent({ userId: 'other' });
  await query.store('a', [hidden, back, other]);
  await expectEvents(stream, [back, other]);
});

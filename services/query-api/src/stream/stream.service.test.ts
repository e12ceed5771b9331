import { randomUUID } from 'node:crypto';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest';
import { tokenOf } from '../http/cursor.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../testing/query-service.ts';
import { expectedPersonRecord } from '../testing/reference.ts';
import { expectEvents, listenTo, PATIENCE, someEvents, type TestStreams } from '../testing/streams.ts';
import { send } from '../testing/views.ts';
import { decodePosition, encodePosition, endOfBlock } from './stream-position.ts';

const DAY_MS = 86_400_000;
const HEARTBEAT_MS = 15_000;

let query: QueryService;
let streams: TestStreams;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { ...WEBHOOKS_ACCOUNT, STREAM_INTERVAL_MS: '50' });
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
  expect(records).toEqual(expect.arrayContaining(events.map(expectedPersonRecord)));
});

test('where a stream sees persons, filters and records know whose visitors are when an event is read', async () => {
  const link = (anonymous_id: string, user_id: string, version: number) => ({
    ...{ workspace_id: 'h', anonymous_id, user_id, version, said: 0 },
  });
  await query.insert('identity_links', [link('phone', 'jane', 1)]);
  const options = { workspace: 'h' };
  const ofJane = await streams.open('?userId=jane', options);
  const all = await streams.open('?identity=linked', options);
  const asSent = await streams.open('?userId=jane&identity=raw', options);
  const [visit, other, paid] = [
    anEvent({ anonymousId: 'phone' }),
    anEvent({ anonymousId: 'kiosk' }),
    anEvent({ userId: 'jane' }),
  ];
  await query.store('h', [visit, other, paid]);
  await expectEvents(ofJane, [visit, paid]);
  await expectEvents(all, [visit, other, paid]);
  await expectEvents(asSent, [paid]);
  const userOf = (uuid: string, { events } = all) => events.find(({ record }) => record['uuid'] === uuid)?.record;
  expect([visit, other, paid].map(({ uuid }) => userOf(uuid)?.['linkedUserId'])).toEqual(['jane', null, 'jane']);
  expect(userOf(paid.uuid, asSent)).not.toHaveProperty('linkedUserId');
  await query.insert('identity_links', [link('kiosk', 'jane', 2)]);
  const later = anEvent({ anonymousId: 'kiosk' });
  await query.store('h', [later]);
  await expectEvents(ofJane, [visit, paid, later]);
  expect(userOf(later.uuid, ofJane)?.['linkedUserId']).toBe('jane');
});

test('late events are sent too: the stream follows the order of storage', async () => {
  const stream = await streams.open();
  const events = [0, 400, 30, 2_000].map((days) => anEvent({ timestampMs: Date.UTC(2026, 2, 1) - days * DAY_MS }));
  for (const event of events) await query.store('a', [event]);
  await expectEvents(stream, events);
  expect(stream.uuids).toEqual(events.map(({ uuid }) => uuid));
});

test('filters by an organization or a user are decided when the event is read, by what is known of them then', async () => {
  const set = async (kind: 'user' | 'organization', version: number, value: string) => {
    const register = aRegister(version, 'set', JSON.stringify(value));
    await query.insert('entity_properties', [{ workspace_id: 'c', kind, id: 'x', property: 'plan', register }]);
  };
  await set('organization', 1, 'pro');
  await set('user', 1, 'free');
  const body = { of: 'organizations', filters: { 'properties.plan': 'pro' } };
  await send(query, 'PUT', '/segments/paying', body, 'admin-c');
  const pro = await streams.open('?organization.properties.plan=pro', { workspace: 'c' });
  const paying = await streams.open('?segment=paying', { workspace: 'c' });
  const rest = await streams.open('?segment[ne]=paying', { workspace: 'c' });
  const others = await streams.open('?organization.properties.plan[ne]=pro&user.properties.plan[ne]=pro', {
    workspace: 'c',
  });
  const before = anEvent({ groupId: 'x' });
  const ofUser = anEvent({ userId: 'x' });
  await query.store('c', [before, ofUser]);
  await expectEvents(pro, [before]);
  await expectEvents(others, [ofUser]);
  await set('organization', 2, 'free');
  const after = anEvent({ groupId: 'x' });
  await query.store('c', [after]);
  await expectEvents(others, [ofUser, after]);
  await expectEvents(rest, [ofUser, after]);
  expect(paying.uuids).toEqual([before.uuid]);
  expect(pro.uuids).toEqual([before.uuid]);
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
    someEvents(2, { timestampMs: Date.UTC(1900, 0, 1) }),
    someEvents(4),
    [...someEvents(2, { timestampMs: -1 }), ...someEvents(2), ...someEvents(2, { timestampMs: 1.7e12 })],
  ];
  for (const batch of batches) await query.store('a', batch);
  await expectEvents(stream, batches.flat());
  await mergeParts(query.clickHouse, 'events');
  // All at once, so that one query serves clients that are at different positions.
  const resumed = await Promise.all(
    stream.events.map(({ id }, index) =>
      index % 2 === 0 ? streams.open(`?after=${id}`) : streams.open('', { lastEventId: id }),
    ),
  );
  for (const [index, client] of resumed.entries()) {
    await eventually(() => client.uuids, PATIENCE).toEqual(stream.uuids.slice(index + 1));
  }
});

test('a client gets all events of a large import, and more than one query reads them', async () => {
  const stream = await streams.open();
  const events = Array.from({ length: 2_500 }, (_, index) => anEvent({ timestampMs: 1e12 + (index % 7) }));
  await query.store('a', events);
  await expectEvents(stream, events);
});

test('events of deleted users and visitors are not sent, and those of users who came back are', async () => {
  const { lastEventId } = await streams.open();
  const [user, visitor] = [randomUUID(), randomUUID()];
  const hidden = anEvent({ userId: user, receivedAtUs: 1e15 });
  const ofVisitor = anEvent({ anonymousId: visitor, receivedAtUs: 1e15 });
  const back = anEvent({ userId: user, receivedAtUs: 3e15 });
  const other = anEvent({ userId: 'other' });
  await query.store('a', [hidden, ofVisitor, back, other]);
  const deletion = { workspace_id: 'a', version: 2e15, stored_at: 1 };
  await query.insert('pending_deletions', [
    { ...deletion, user_id: user },
    { ...deletion, user_id: visitorOf(visitor) },
  ]);
  // A deletion is in force within a second.
  await eventually(async () => (await query.get(`/events?userId=${user}`)).body.total, PATIENCE).toBe(1);
  await expectEvents(await streams.open('', { lastEventId }), [back, other]);
});

test('every client gets a heartbeat, and resumes from it: one that gets few events reads nothing again', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  // Of another service: the timer of one that has had a stream may still run.
  const own = await startQuery(inject('clickhouseUrl'), { STREAM_INTERVAL_MS: '50' });
  onTestFinished(() => own.stop());
  const ofOwn = await listenTo(own);
  const client = await ofOwn.open('?event=rare');
  const position = () => decodePosition(client.lastEventId ?? '')?.position;
  const first = position();
  await own.store('a', someEvents(5));
  const positionAfterBeat = () => {
    vi.advanceTimersByTime(HEARTBEAT_MS);
    return position();
  };
  await eventually(positionAfterBeat, PATIENCE).not.toEqual(first);
  expect(client.comments).toContain('heartbeat');
  expect(client.events).toEqual([]);
  const resumed = await ofOwn.open('', { lastEventId: client.lastEventId });
  const later = anEvent();
  await own.store('a', [later]);
  await expectEvents(resumed, [later]);
  await ofOwn.closeAll();
});

test('a client that asks for the head of a stream gets its headers, and takes no place', async () => {
  const response = await query.app.inject({
    method: 'HEAD',
    url: '/events/stream',
    headers: { authorization: 'Bearer a' },
  });
  expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'text/event-stream']);
});

test.each([
  ['startDate=2026-01-01', ['startDate']],
  ['limit=1&cursor=x&colour=1', ['limit', 'cursor', 'colour']],
  ['after=1&event[exists]=true', ['after', 'event[exists]']],
  [`after=${tokenOf([1, [0, 1, 2, 'x']])}`, ['after']],
])('the parameters %s are refused by name', async (parameters, paths) => {
  const { status, body } = await query.get(`/events/stream?${parameters}`);
  expect([status, body.code]).toEqual([400, 'invalid_request']);
  expect(body.errors.map(({ path }) => path).sort()).toEqual([...paths].sort());
});

test('a position that is too old, or not of this store, is refused with what to do, and never skipped', async () => {
  const { lastEventId = '' } = await streams.open();
  const { position } = decodePosition(lastEventId) ?? {};
  const now = Date.now();
  const resume = (id: string) => query.get(`/events/stream?after=${id}`);
  for (const id of [
    encodePosition(position ?? new Map(), now - 7 * DAY_MS - 2_000),
    encodePosition(new Map([[0, endOfBlock(1e9)]]), now),
    encodePosition(new Map([[1, endOfBlock(1)]]), now),
    encodePosition(new Map([...(position ?? []), [1, endOfBlock(1)]]), now),
  ]) {
    // Whether it is refused at all: a stream would never end.
    expect((await streams.openPaused(`?after=${id}`)).response.statusCode).toBe(410);
    const { status, body, text } = await resume(id);
    expect([status, body.code]).toEqual([410, 'position_lost']);
    expect(text).toContain('GET /events');
  }
  await streams.open(`?after=${encodePosition(position ?? new Map(), now - 7 * DAY_MS + 60_000)}`);
});

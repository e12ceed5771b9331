import { randomBytes } from 'node:crypto';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterEach, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { type Mirror, type Mirrors, startMirrors } from '../testing/mirrors.ts';
import { anEvent, type TestEvent } from '../testing/query-service.ts';
import { listenTo, PATIENCE, someEvents, type TestStreams } from '../testing/streams.ts';
import { decodePosition, encodePosition, endOfBlock } from './stream-position.ts';

/*
 * Nothing stores into these mirrors but the tests, which also write their history: a `progress` says how long ago the newest
 * block was what it is now. What is sent again after a move is what was stored since the last one that is five seconds older
 * than the time until which everything was sent.
 */

interface Service extends Mirrors {
  readonly a1: Mirror;
  readonly a2: Mirror;
  readonly streams: TestStreams;
}

let service: Service | undefined;

afterEach(async () => {
  await service?.stop();
  service = undefined;
});

/** What polls on a busy machine add to the lag makes no stream move, and stops none. */
const PATIENT = { READ_LAG_MS_MAX: '60000', READ_STALE_MS_MAX: '600000' } as const;

async function startTwo(given: Readonly<Record<string, string>> = {}): Promise<Service> {
  const env = { STREAM_INTERVAL_MS: '50', ...PATIENT, ...given };
  const mirrors = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2'], env);
  service = { ...mirrors, streams: await listenTo(mirrors) };
  return service;
}

const MINUTE_MS = 60_000;

/**
 * Starts the app over two mirrors that had stored an old event a minute ago, and then a new one. Blocks of the second one have
 * higher numbers.
 */
async function startWithHistory(env?: Readonly<Record<string, string>>) {
  const mirrors = await startTwo(env);
  const [old, recent] = [anEvent({ event: 'old' }), anEvent({ event: 'recent' })];
  for (const event of someEvents(3)) await mirrors.a2.store('h', [event]);
  for (const { store, progress } of mirrors.mirrors) {
    await store('a', [old]);
    await progress(0, Date.now() - MINUTE_MS);
    await store('a', [recent]);
    await progress();
  }
  return { ...mirrors, old, recent };
}

async function storeInBoth({ mirrors }: Mirrors, events: readonly TestEvent[]): Promise<void> {
  for (const { store, progress } of mirrors) {
    await store('a', events);
    await progress();
  }
}

const uuidsOf = (events: readonly TestEvent[]) => events.map(({ uuid }) => uuid);

/** Waits until a hub has looked for new events, and for what is recorded of its server, that are stored now. */
async function untilLookedAgain(mirrors: Mirrors): Promise<void> {
  const looks = () => metric(mirrors, 'sluice_query_duration_seconds_count{kind="stream_newest",outcome="ok"}');
  const before = await looks();
  await eventually(looks, PATIENCE).toBeGreaterThan(before + 1);
}

async function newestBlockOf({ clickHouse }: Mirror): Promise<number> {
  const result = await clickHouse.query({ query: 'SELECT max(_block_number) AS n FROM events', format: 'JSONEachRow' });
  return Number((await result.json<{ n: number }>())[0]?.n);
}

/** What an id says of its server. */
const originOf = (id: string | undefined) => decodePosition(id ?? '')?.origin;

/** Returns an id at the end of a block of a server. */
function idOf(server: string, block: number, throughMs: number, database = '0000000a'): string {
  return encodePosition(new Map([[0, endOfBlock(block)]]), Date.now(), { server, database, throughMs });
}

test.each(['refuses', 'is silent'] as const)(
  'when its server %s, a stream goes on at the other one, says so, repeats what is recent and misses nothing',
  async (behaviour) => {
    const mirrors = await startWithHistory();
    const { a1, a2, streams, recent } = mirrors;
    const stream = await streams.open();
    const [both, missing, later] = [anEvent(), anEvent(), anEvent()];
    await storeInBoth(mirrors, [both]);
    await eventually(() => stream.uuids, PATIENCE).toEqual([both.uuid]);
    const before = originOf(stream.events[0]?.id);
    expect(before).toEqual({ server: 'a1', database: '0000000a', throughMs: expect.any(Number) });
    expect(before?.throughMs).toBeGreaterThan(Date.now() - 2 * MINUTE_MS);
    a1.behaviour = behaviour;
    const opened = await streams.open();
    await a2.store('a', [missing]);
    await eventually(() => stream.uuids.slice(1), PATIENCE).toEqual(uuidsOf([recent, both, missing]));
    await a2.store('a', [later]);
    await eventually(() => stream.uuids.slice(4), PATIENCE).toEqual([later.uuid]);
    // So does that of a client that has come before the server was given up.
    await eventually(() => opened.uuids.slice(-2), PATIENCE).toEqual(uuidsOf([missing, later]));
    expect(stream.moves).toEqual([{ from: 'a1', to: 'a2', since: expect.stringMatching(/^20.*Z$/) }]);
    expect(Date.parse(stream.moves[0]?.since ?? '')).toBeLessThan(Date.now() - MINUTE_MS);
    expect(originOf(stream.lastEventId)?.server).toBe('a2');
    expect(await metric(mirrors, 'sluice_stream_moves_total')).toBe(1 + opened.moves.length);
    // It stays there when the first one is back, and so does a client that connects again.
    a1.behaviour = 'answers';
    await eventually(async () => (await mirrors.get('/events?limit=1')).status, PATIENCE).toBe(200);
    const resumed = await streams.open('', { lastEventId: stream.lastEventId });
    const last = anEvent();
    await a2.store('a', [last]);
    for (const client of [stream, resumed]) await eventually(() => client.uuids.at(-1), PATIENCE).toBe(last.uuid);
    expect([stream.moves.length, resumed.moves.length, resumed.uuids.length]).toEqual([1, 0, 1]);
  },
);

test('a stream misses nothing of partitions in which the other server was ahead, whose clock may be late by some seconds', async () => {
  const { a1, a2, streams } = await startTwo();
  const [first, second, third, fourth, behind] = [anEvent(), anEvent(), anEvent(), anEvent(), anEvent()];
  // Of one partition, a2 has everything at once. Of another one it lacks 40 seconds, and a1 of both the last eight.
  const nowMs = Date.now();
  await a2.store('a', [first]);
  await a2.progress(40_000, nowMs - 30_000);
  await a2.store('a', [second]);
  await a2.progress(40_000, nowMs - 12_000);
  await a2.store('a', [third]);
  await a2.progress(40_000, nowMs - 4_000);
  await a2.store('a', [fourth]);
  await a2.progress(40_000, nowMs);
  for (const event of [first, behind]) await a1.store('a', [event]);
  await a1.progress(8_000, nowMs);
  const stream = await streams.open();
  a1.behaviour = 'refuses';
  await eventually(() => stream.uuids, PATIENCE).toEqual(uuidsOf([second, third, fourth]));
  await a2.store('a', [behind]);
  await eventually(() => stream.uuids.at(-1), PATIENCE).toBe(behind.uuid);
});

test('a stream in the midst of a block gets the rest of it from the other server', async () => {
  const mirrors = await startTwo();
  const { a1, a2, streams } = mirrors;
  for (const { store, progress, clickHouse } of mirrors.mirrors) {
    await clickHouse.command({ query: 'TRUNCATE TABLE storing_progress' });
    await store('a', [anEvent()]);
    await progress(0, Date.now() - 40_000);
    await progress(0, Date.now() - 30_000);
  }
  const stream = await streams.openPaused();
  await eventually(() => metric(mirrors, 'sluice_stream_listeners'), PATIENCE).toBe(1);
  const text = randomBytes(75_000).toString('base64');
  const events = someEvents(150, { properties: JSON.stringify({ text }) });
  await a2.store('a', events);
  await a2.progress(0, Date.now() - 15_000);
  await a2.progress();
  await a1.store('a', events);
  // Until now, but that counts for the end of the block alone.
  await a1.progress();
  await eventually(() => metric(mirrors, 'sluice_stream_events_total'), PATIENCE).toBeGreaterThan(0);
  await untilLookedAgain(mirrors);
  a1.behaviour = 'refuses';
  await eventually(() => metric(mirrors, 'sluice_stream_moves_total'), PATIENCE).toBe(1);
  stream.read();
  const all = new Set(uuidsOf(events));
  await eventually(() => all.isSubsetOf(new Set(stream.uuids)), PATIENCE).toBe(true);
});

test('a stream goes on at the other server when its own is removed from the file, lags, is filled, or has another database', async () => {
  const mirrors = await startWithHistory();
  const { a1, a2, streams } = mirrors;
  const stream = await streams.open();
  const lag = () => a1.progress(120_000);
  const moveBack = async () => {
    await mirrors.writeFile(['a1']);
    await eventually(() => stream.moves.at(-1)?.to, PATIENCE).toBe('a1');
    await mirrors.writeFile(['a1', 'a2']);
    await a1.progress();
  };
  for (const [index, leave] of [
    () => mirrors.writeFile(['a2']),
    lag,
    () => a1.identify({ state: 'filling' }),
    () => a1.identify({ server: 'a3' }),
  ].entries()) {
    await leave();
    await eventually(() => stream.moves.length, PATIENCE).toBe(2 * index + 1);
    expect(stream.moves.at(-1)).toMatchObject({ from: 'a1', to: 'a2' });
    const event = anEvent();
    await a2.store('a', [event]);
    await eventually(() => stream.uuids.includes(event.uuid), PATIENCE).toBe(true);
    await mirrors.writeFile(['a1', 'a2']);
    await a1.identify();
    await a1.progress();
    await eventually(async () => (await mirrors.get('/events?limit=1')).status, PATIENCE).toBe(200);
    await moveBack();
  }
  // Its blocks are those of another database: they count anew.
  const { moves } = stream;
  const before = moves.length;
  await a1.identify({ id: '0190a0a0-0000-7000-8000-00000000000b' });
  await eventually(() => moves.length, PATIENCE).toBe(before + 1);
  expect([moves.at(-1), originOf(stream.lastEventId)]).toMatchObject([
    { from: 'a1', to: 'a1' },
    { server: 'a1', database: '0000000b' },
  ]);
  expect(await metric(mirrors, 'sluice_stream_ended_total{reason="position_lost"}')).toBe(0);
});

test('a stream waits while no other server can be read, and goes on without a repeat', async () => {
  const mirrors = await startWithHistory();
  const { a1, a2, streams } = mirrors;
  await mirrors.writeFile(['a1']);
  const stream = await streams.open();
  a1.behaviour = 'refuses';
  a2.behaviour = 'refuses';
  const [one, other] = [anEvent(), anEvent()];
  await storeInBoth(mirrors, [one]);
  await mirrors.writeFile(['a1', 'a2']);
  await eventually(async () => (await mirrors.get('/events')).status, PATIENCE).toBe(503);
  a1.behaviour = 'answers';
  await storeInBoth(mirrors, [other]);
  await eventually(() => stream.uuids, PATIENCE).toEqual(uuidsOf([one, other]));
  expect(stream.moves).toEqual([]);
});

test('a server that lags is not left while the other one does not answer', async () => {
  const { a1, a2, streams } = await startWithHistory();
  const stream = await streams.open();
  a2.behaviour = 'refuses';
  await a1.progress(120_000);
  const event = anEvent();
  await a1.store('a', [event]);
  await eventually(() => stream.uuids, PATIENCE).toEqual([event.uuid]);
  expect(stream.moves).toEqual([]);
  a2.behaviour = 'answers';
  await a2.progress();
  await eventually(() => stream.moves, PATIENCE).toHaveLength(1);
});

test('a server that is too far behind while the other one does not answer sends nothing: it may lack deletions', async () => {
  const mirrors = await startWithHistory({ READ_STALE_MS_MAX: '60000' });
  const { a1, a2, streams } = mirrors;
  const stream = await streams.open();
  a2.behaviour = 'refuses';
  await a1.progress(120_000);
  await eventually(async () => (await mirrors.get('/events')).status, PATIENCE).toBe(503);
  const event = anEvent();
  await a1.store('a', [event]);
  const refused = () =>
    metric(mirrors, 'sluice_query_duration_seconds_count{kind="stream_newest",outcome="unavailable"}');
  const before = await refused();
  await eventually(refused, PATIENCE).toBeGreaterThan(before + 1);
  expect(stream.uuids).toEqual([]);
  await a1.progress();
  await eventually(() => stream.uuids, PATIENCE).toEqual([event.uuid]);
  expect(stream.moves).toEqual([]);
});

test.each([
  ['a record that is old enough', 'SELECT now64(3), now64(3), 0'],
  ['the blocks of the record', 'SELECT now64(3) - toIntervalSecond(30), now64(3), 1000000000'],
])('without %s at the other server, a stream ends as position_lost', async (_, record) => {
  const mirrors = await startTwo();
  const { a1, a2 } = mirrors;
  const stream = await mirrors.streams.open();
  await a2.clickHouse.command({ query: 'TRUNCATE TABLE storing_progress' });
  await a2.clickHouse.command({ query: `INSERT INTO storing_progress ${record}` });
  a1.behaviour = 'refuses';
  await stream.ended;
  expect(stream.problems).toEqual([{ code: 'position_lost', detail: expect.stringContaining('GET /events') }]);
  expect(stream.moves).toEqual([]);
  await eventually(() => metric(mirrors, 'sluice_stream_ended_total{reason="position_lost"}'), PATIENCE).toBe(1);
  expect(await metric(mirrors, 'sluice_stream_moves_total')).toBe(0);
});

test('the streams of all servers together have the places of a workspace', async () => {
  const mirrors = await startWithHistory({ STREAM_LISTENERS_PER_WORKSPACE: '2' });
  const { a2, streams } = mirrors;
  const clients = [
    await streams.open(),
    await streams.open(`?after=${idOf('a2', await newestBlockOf(a2), Date.now())}`),
  ];
  expect(clients.map(({ lastEventId }) => originOf(lastEventId)?.server)).toEqual(['a1', 'a2']);
  expect(await metric(mirrors, 'sluice_stream_listeners')).toBe(2);
  expect((await mirrors.get('/events/stream')).body.code).toBe('too_many_listeners');
  clients[1]?.close();
  await eventually(() => metric(mirrors, 'sluice_stream_listeners'), PATIENCE).toBe(1);
  await streams.open();
});

test('a client resumes at the server of its id, or elsewhere when that is gone or has another database', async () => {
  const mirrors = await startWithHistory();
  const { a2, streams, recent } = mirrors;
  const block = await newestBlockOf(a2);
  const resume = async (id: string) => {
    const stream = await streams.open('', { lastEventId: id });
    const event = anEvent();
    await storeInBoth(mirrors, [event]);
    await eventually(() => stream.uuids.at(-1), PATIENCE).toBe(event.uuid);
    const { moves, uuids } = stream;
    stream.close();
    return { moves: moves.map(({ from, to }) => `${from} ${to}`), earlier: uuids.slice(0, -1) };
  };
  const now = Date.now();
  // Requests read a1.
  expect((await mirrors.get('/events?limit=1')).status).toBe(200);
  expect(await resume(idOf('a2', block, now))).toEqual({ moves: [], earlier: [] });
  expect((await resume(idOf('a3', 1, now - MINUTE_MS / 2))).moves).toEqual(['a3 a1']);
  expect((await resume(idOf('a3', 1, now - MINUTE_MS / 2))).earlier).toContain(recent.uuid);
  expect((await resume(idOf('a2', block, now, '0000000c'))).moves).toEqual(['a2 a2']);
  await mirrors.writeFile(['a1']);
  await eventually(() => resume(idOf('a2', 1e9, now)).then(({ moves }) => moves), PATIENCE).toEqual(['a2 a1']);
});

test('positions that nothing is known of are refused, and the refusal names no server', async () => {
  const mirrors = await startWithHistory();
  const now = Date.now();
  for (const id of [
    // Before anything was recorded.
    idOf('a3', 1, now - 3_600_000),
    idOf('a3', 1, 0),
    // Of this server, and not stored there.
    idOf('a1', 1e9, now),
    idOf('a1', Number.MAX_SAFE_INTEGER, now),
  ]) {
    const { status, body, text } = await mirrors.get(`/events/stream?after=${id}`);
    expect([status, body.code]).toEqual([410, 'position_lost']);
    expect(text).not.toMatch(/\ba[13]\b/);
  }
  const { status } = await mirrors.get(`/events/stream?after=${idOf('no name', 1, now)}`);
  expect(status).toBe(400);
  // A forged time makes a client miss events, and nothing else: it goes on behind what is recorded.
  const forged = await mirrors.streams.open('', { lastEventId: idOf('a3', 1, Date.UTC(2199, 0, 1)) });
  const event = anEvent();
  await storeInBoth(mirrors, [event]);
  await eventually(() => forged.uuids.at(-1), PATIENCE).toBe(event.uuid);
});

test('ids from before the file belong to the server with the consumer group of then', async () => {
  const mirrors = await startWithHistory();
  const { a1, streams } = mirrors;
  const old = encodePosition(new Map([[0, endOfBlock((await newestBlockOf(a1)) - 1)]]), Date.now());
  const stream = await streams.open('', { lastEventId: old });
  await eventually(() => stream.uuids, PATIENCE).toEqual([mirrors.recent.uuid]);
  // From now on its ids have a name and a time, which was looked up.
  expect(originOf(stream.lastEventId)).toMatchObject({ server: 'a1' });
  expect(originOf(stream.lastEventId)?.throughMs).toBeGreaterThan(0);
  for (const position of [new Map([[1, endOfBlock(1)]]), new Map([[0, endOfBlock(1e9)]])]) {
    const { status } = await mirrors.get(`/events/stream?after=${encodePosition(position, Date.now())}`);
    expect(status).toBe(410);
  }
  a1.behaviour = 'refuses';
  const { status, body } = await mirrors.get(`/events/stream?after=${old}`);
  expect([status, body.code]).toEqual([410, 'position_lost']);
});

test('many streams that go on together cost the other server two queries, and each gets its own events', async () => {
  const mirrors = await startWithHistory({ STREAM_LISTENERS_PER_WORKSPACE: '60' });
  const { a1, a2, streams, old, recent } = mirrors;
  const filters = ['', '?event=recent', '?event=paid'];
  const clients = await Promise.all(
    Array.from({ length: 60 }, (_, index) => streams.open(filters[index % filters.length])),
  );
  const other = await streams.open('', { workspace: 'b' });
  const paid = anEvent({ event: 'paid' });
  await storeInBoth(mirrors, [paid]);
  const ofThird = (third: number) => clients.filter((_, index) => index % 3 === third);
  for (const client of [...ofThird(0), ...ofThird(2)])
    await eventually(() => client.uuids, PATIENCE).toEqual([paid.uuid]);
  a1.behaviour = 'refuses';
  await eventually(() => metric(mirrors, 'sluice_stream_moves_total'), PATIENCE).toBe(61);
  expect(await metric(mirrors, 'sluice_query_duration_seconds_count{kind="stream_progress",outcome="ok"}')).toBe(1);
  const late = anEvent({ event: 'paid' });
  await a2.store('a', [late]);
  const expected = [[paid, recent, paid, late], [recent], [paid, paid, late]].map(uuidsOf);
  for (const [third, uuids] of expected.entries()) {
    for (const client of ofThird(third)) await eventually(() => client.uuids, PATIENCE).toEqual(uuids);
  }
  expect([...clients, other].flatMap(({ uuids }) => uuids)).not.toContain(old.uuid);
  expect(other.uuids).toEqual([]);
  // Their places are those of all servers together.
  expect(await metric(mirrors, 'sluice_stream_listeners')).toBe(61);
  a1.behaviour = 'answers';
  await mirrors.writeFile(['a1', 'a2']);
  expect((await mirrors.get(`/events/stream?after=${idOf('a1', 1, Date.now())}`)).body.code).toBe('too_many_listeners');
});

test('events of deleted users, and expired ones, are not sent again by the other server', async () => {
  const mirrors = await startWithHistory();
  const { a1, a2, streams } = mirrors;
  const stream = await streams.open();
  const hidden = anEvent({ userId: 'ada', receivedAtUs: 1e15 });
  const expired = anEvent({ timestampMs: Date.now() - 40 * 86_400_000 });
  const shown = anEvent({ userId: 'bob', timestampMs: Date.now() });
  await storeInBoth(mirrors, [expired, hidden, shown]);
  await eventually(() => stream.uuids.length, PATIENCE).toBe(3);
  // Only the server that is left behind has them.
  await a1.insert('pending_deletions', [{ workspace_id: 'a', user_id: 'ada', version: 2e15, stored_at: Date.now() }]);
  await a1.insert('retention', [{ workspace_id: 'a', days: 30, set_at: Date.now() * 1_000 }]);
  await eventually(async () => (await mirrors.get('/events?userId=ada')).body.total, PATIENCE).toBe(0);
  await eventually(async () => (await mirrors.get('/events')).body.total, PATIENCE).toBe(1);
  a1.behaviour = 'refuses';
  await a2.store('a', [anEvent({ event: 'last', timestampMs: Date.now() })]);
  await eventually(() => stream.events.at(-1)?.record['event'], PATIENCE).toBe('last');
  const after = stream.uuids.slice(3);
  expect(after).toContain(shown.uuid);
  expect(after).not.toContain(hidden.uuid);
  expect(after).not.toContain(expired.uuid);
});

test('a stream waits while its server lacks more deletions than a statement may name', async () => {
  const mirrors = await startTwo();
  const { a1, a2, streams } = mirrors;
  const pending = Array.from({ length: 100 }, (_, index) => ({
    ...{ workspace_id: 'a', user_id: `${'x'.repeat(500)}${index}`, version: 5, stored_at: Date.now() },
  }));
  const stream = await streams.open();
  await a2.insert('pending_deletions', pending);
  // Known of both servers: requests read the other one.
  await eventually(async () => (await mirrors.get('/events')).status, PATIENCE).toBe(200);
  await untilLookedAgain(mirrors);
  const event = anEvent();
  await a1.store('a', [event]);
  for (const _ of [1, 2]) await untilLookedAgain(mirrors);
  await a1.insert('pending_deletions', pending);
  await eventually(() => stream.uuids, PATIENCE).toEqual([event.uuid]);
  expect(stream.moves).toEqual([]);
});

test('a service that stops while streams go on elsewhere ends them whole', async () => {
  const mirrors = await startWithHistory();
  const stream = await mirrors.streams.open();
  mirrors.a1.behaviour = 'is silent';
  await eventually(async () => (await mirrors.get('/events?limit=1')).status, PATIENCE).toBe(200);
  await mirrors.app.close();
  await stream.ended;
  expect(stream.response.complete).toBe(true);
});

test('a stream leaves a server that answers polls, and not the queries of streams, once that has lasted', async () => {
  const { mirrors, streams, a1, a2 } = await startTwo();
  for (const { progress } of mirrors) {
    await progress(0, Date.now() - MINUTE_MS);
    await progress();
  }
  const stream = await streams.open();
  await a1.clickHouse.command({ query: 'DROP TABLE events SYNC' });
  const event = anEvent();
  await a2.store('a', [event]);
  await eventually(() => stream.uuids, PATIENCE).toEqual([event.uuid]);
  expect(stream.moves).toMatchObject([{ from: 'a1', to: 'a2' }]);
});

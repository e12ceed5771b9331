import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { readerWith } from '../testing/reader-with.ts';
import { expectEvents, listenTo, PATIENCE, someEvents, type TestStreams } from '../testing/streams.ts';
import { StreamListener } from './stream-listener.ts';
import { endOfBlock } from './stream-position.ts';

/** So long that a busy machine does not fall behind. */
const INTERVAL_MS = 200;

let query: QueryService;
let streams: TestStreams;

beforeEach(async () => {
  query = await startQuery(inject('clickhouseUrl'), {
    STREAM_INTERVAL_MS: String(INTERVAL_MS),
    STREAM_LISTENERS_MAX: '101',
  });
  streams = await listenTo(query);
});
afterEach(async () => {
  await streams.closeAll();
  await query.stop();
});

async function queries(kind: 'stream_newest' | 'stream_events'): Promise<number> {
  return await metric(query, `sluice_query_duration_seconds_count{kind="${kind}",outcome="ok"}`);
}

const ended = (reason: string) => metric(query, `sluice_stream_ended_total{reason="${reason}"}`);

test('a hundred clients make ClickHouse work as often as one: one look an interval, one query for new events', async () => {
  const startedAt = performance.now();
  const filters = ['', '?event=e', '?event[ne]=f&properties.n[gte]=1'];
  const clients = await Promise.all(
    Array.from({ length: 99 }, (_, index) => streams.open(filters[index % filters.length])),
  );
  clients.push(await streams.open('?event=e', { workspace: 'b' }));
  expect(await queries('stream_events')).toBe(0);
  const event = anEvent({ properties: '{"n":1}' });
  await query.store('a', [event]);
  for (const client of clients.slice(0, 99)) await expectEvents(client, [event]);
  await eventually(() => queries('stream_events'), PATIENCE).toBe(1);
  expect(clients.at(-1)?.events).toEqual([]);
  // A slow machine looks less often. The first look finds where the streams begin.
  const intervals = (performance.now() - startedAt) / INTERVAL_MS;
  expect(await queries('stream_newest')).toBeLessThanOrEqual(intervals + 2);
  expect(await metric(query, 'sluice_stream_listeners')).toBe(100);
  expect(await metric(query, 'sluice_stream_events_total')).toBe(99);
});

test('a workspace may have a hundred clients, and all workspaces together no more than configured', async () => {
  const clients = await Promise.all(Array.from({ length: 100 }, () => streams.open()));
  const refused = await streams.openPaused();
  expect([refused.response.statusCode, refused.response.headers['retry-after']]).toEqual([429, '10']);
  await streams.open('', { workspace: 'b' });
  expect((await streams.openPaused('', { workspace: 'c' })).response.statusCode).toBe(503);
  expect((await query.get('/events/stream')).body.code).toBe('too_many_listeners');
  expect((await query.get('/events/stream', 'c')).body.code).toBe('overloaded');
  clients[0]?.close();
  await eventually(() => metric(query, 'sluice_stream_listeners'), PATIENCE).toBe(100);
  await streams.open();
});

test('a client that leaves frees its place, and ClickHouse is asked nothing when nobody listens', async () => {
  const client = await streams.open();
  client.close();
  await eventually(() => metric(query, 'sluice_stream_listeners'), PATIENCE).toBe(0);
  await eventually(() => ended('client'), PATIENCE).toBe(1);
  const looks = await queries('stream_newest');
  await query.store('a', someEvents(1));
  // Each of these takes longer than an interval.
  for (let request = 0; request < 3; request += 1) await query.get('/events?properties.x[exists]=false');
  // The loop may have begun its last round.
  expect(await queries('stream_newest')).toBeLessThanOrEqual(looks + 1);
});

test('a client that reads nothing takes little memory, holds up no other one, and gets everything when it reads', async () => {
  const [slow, other] = [await streams.openPaused(), await streams.open('?event=last')];
  await eventually(() => metric(query, 'sluice_stream_listeners'), PATIENCE).toBe(2);
  // 30 MB, which no buffer of the connection takes.
  const text = randomBytes(75_000).toString('base64');
  const long = () => someEvents(150, { properties: JSON.stringify({ text }) });
  // Two queries, each of far more than a buffer holds.
  const events = [...long(), ...long()];
  for (const half of [events.slice(0, 150), events.slice(150)]) await query.store('a', half);
  const last = anEvent({ event: 'last' });
  await query.store('a', [last]);
  await expectEvents(other, [last]);
  // Nobody else was sent one of the long events.
  expect(await metric(query, 'sluice_stream_events_total')).toBeLessThan(100);
  slow.read();
  await expectEvents(slow, [...events, last]);
});

test('a client that has read nothing for a minute is disconnected', () => {
  let nowMs = 0;
  const request = {
    selection: { workspace: 'a', fields: [], properties: [] },
    key: 'k',
    weight: 1,
    isAllowed: () => true,
  };
  const place = { source: { idOf: () => '' }, position: new Map([[0, endOfBlock(1)]]), throughMs: 0 };
  const listener = new StreamListener(request, place, () => nowMs);
  while (listener.isOpen) listener.beat();
  nowMs = 59_999;
  listener.beat();
  expect(listener.isEnded).toBe(false);
  nowMs = 60_000;
  listener.beat();
  expect(listener.isEnded).toBe(true);
  expect(listener.body.destroyed).toBe(true);
});

test('a service that stops ends its streams whole', async () => {
  const stopping = await startQuery(inject('clickhouseUrl'));
  const client = await (await listenTo(stopping)).open();
  const event = anEvent();
  await stopping.store('a', [event]);
  await expectEvents(client, [event]);
  await stopping.app.close();
  await client.ended;
  expect(client.response.complete).toBe(true);
  await stopping.stop();
});

test('what a client catches up with keeps nobody waiting who has everything so far', async () => {
  const opening = new AbortController();
  let heldBack = 0;
  const service = await startQuery(inject('clickhouseUrl'), { STREAM_INTERVAL_MS: '50' }, (reader) =>
    readerWith(reader, {
      // Queries for the events of workspace `b` take long.
      async *read(request) {
        const isHeld = request.queryId.includes('/stream_events/') && Object.values(request.params).includes('b');
        if (isHeld && !opening.signal.aborted) {
          heldBack += 1;
          await once(opening.signal, 'abort');
        }
        yield* reader.read(request);
      },
    }),
  );
  const clients = await listenTo(service);
  try {
    const old = anEvent();
    const first = await clients.open('', { workspace: 'b' });
    const lastEventId = first.lastEventId;
    first.close();
    await service.store('b', [old]);
    const current = await clients.open();
    const seen = anEvent();
    await service.store('a', [seen]);
    // From here on the loop for those that have everything does not read the older event any more, which it would wait for.
    await expectEvents(current, [seen]);
    const behind = await clients.openPaused('', { workspace: 'b', lastEventId });
    behind.read();
    await eventually(() => heldBack, PATIENCE).toBe(1);
    const event = anEvent();
    await service.store('a', [event]);
    await expectEvents(current, [seen, event]);
    expect(behind.events).toEqual([]);
    opening.abort();
    await expectEvents(behind, [old]);
    const next = anEvent();
    await service.store('b', [next]);
    await expectEvents(behind, [old, next]);
  } finally {
    opening.abort();
    await clients.closeAll();
    await service.stop();
  }
});

test('a stream ends when its key is revoked, and when it is moved to another workspace', async () => {
  const [revoked, kept] = [await streams.open(), await streams.open('', { workspace: 'b' })];
  const entry = { id: 'b', hash: hashKey('b'), workspace: 'b', scopes: ['query' as const] };
  await writeKeysFile(query.config.API_KEYS_FILE ?? '', [entry]);
  await eventually(() => ended('unauthorized'), PATIENCE).toBe(1);
  await revoked.ended;
  const event = anEvent();
  await query.store('b', [event]);
  await expectEvents(kept, [event]);
  await writeKeysFile(query.config.API_KEYS_FILE ?? '', [{ ...entry, workspace: 'c' }]);
  await eventually(() => ended('unauthorized'), PATIENCE).toBe(2);
  await kept.ended;
});

import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as requestHttp } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { NAME_DOTS_MAX, PROPERTY_FILTERS_MAX } from '../http/limits.ts';
import { ClickHouseException } from '../store/read-failures.ts';
import { metric } from '../testing/load.ts';
import { anEvent, type QueryService, startQuery } from '../testing/query-service.ts';
import { readerWith } from '../testing/reader-with.ts';
import { expectEvents, listenTo, PATIENCE, someEvents, type TestStreams } from '../testing/streams.ts';

let query: QueryService;
let streams: TestStreams;

async function start(database?: typeof createDatabase): Promise<void> {
  const env = { STREAM_INTERVAL_MS: '50', QUERY_RESULT_BYTES_MAX: String(1_024 * 1_024) };
  query = await startQuery(inject('clickhouseUrl'), env, undefined, database);
  streams = await listenTo(query);
  onTestFinished(async () => {
    await streams.closeAll();
    await query.stop();
  });
}

const command = (sql: string) => query.clickHouse.command({ query: sql });
const ended = (reason: string) => metric(query, `sluice_stream_ended_total{reason="${reason}"}`);

/** Waits until a look for new events has begun and ended, so that it saw what is stored now. */
async function untilLookedAgain(): Promise<void> {
  const looks = () => metric(query, 'sluice_query_duration_seconds_count{kind="stream_newest",outcome="ok"}');
  const before = await looks();
  await eventually(async () => (await looks()) > before + 1 || (await isIdle()), PATIENCE).toBe(true);
}

const isIdle = async () => (await metric(query, 'sluice_stream_listeners')) === 0;

test('a client whose own events are too much for the budget is disconnected; the others of the same query go on', async () => {
  await start();
  const [costly, other] = [await streams.open(), await streams.open('', { workspace: 'b' })];
  const text = randomBytes(75_000).toString('base64');
  await query.store('a', someEvents(20, { properties: JSON.stringify({ text }) }));
  const event = anEvent();
  await query.store('b', [event]);
  await expectEvents(other, [event]);
  await eventually(() => ended('failed'), PATIENCE).toBe(1);
  await costly.ended;
  await eventually(() => metric(query, 'sluice_stream_listeners'), PATIENCE).toBe(1);
});

test('no stream is refused as too expensive because ClickHouse is too slow to say where it begins', async () => {
  const slow = await startQuery(inject('clickhouseUrl'), {}, (reader) =>
    readerWith(reader, {
      async *read(request) {
        if (request.queryId.includes('/stream_newest/')) throw new ClickHouseException(159, 'Timeout exceeded');
        yield* reader.read(request);
      },
    }),
  );
  onTestFinished(() => slow.stop());
  const { status, body } = await slow.get('/events/stream');
  expect([status, body.code]).toEqual([503, 'overloaded']);
});

test('filters that are too long for one query are read by several', async () => {
  await start();
  const path = '.b'.repeat(NAME_DOTS_MAX);
  const filters = (client: number) =>
    Array.from({ length: PROPERTY_FILTERS_MAX }, (_, index) => `properties.${index}${path}[ne]=${client}`).join('&');
  const clients = await Promise.all([1, 2, 3].map((client) => streams.open(`?${filters(client)}`)));
  const event = anEvent();
  await query.store('a', [event]);
  for (const client of clients) await expectEvents(client, [event]);
});

/** A valid filter that fits into a request, and whose query does not fit into one of ClickHouse. */
const TOO_LONG = `properties.${Array.from({ length: NAME_DOTS_MAX + 1 }, (_, index) => `${index}${'\\'.repeat(2_100)}`).join('.')}=x`;

test('a filter that is too long for ClickHouse is refused by name on every route, and the streams of others go on', async () => {
  await start();
  const other = await streams.open('', { workspace: 'b' });
  expect((await streams.openPaused(`?${TOO_LONG}`)).response.statusCode).toBe(400);
  const dates = 'startDate=2026-03-01&endDate=2026-03-02';
  for (const path of [
    '/events?',
    '/events/stream?',
    `/events/export?${dates}&`,
    `/events/series?${dates}&`,
    `/events/retention?interval=day&${dates}&`,
    '/users?',
  ]) {
    const { status, body } = await query.get(`${path}${TOO_LONG}`);
    expect([path, status, body.code, body.errors]).toEqual([
      path,
      400,
      'invalid_request',
      [expect.objectContaining({ path: 'properties', code: 'too_long', message: expect.stringContaining('too long') })],
    ]);
  }
  const event = anEvent();
  await query.store('b', [event]);
  await expectEvents(other, [event]);
});

/** A proxy in front of ClickHouse that answers a request with a long address itself. */
async function proxyWithStatus(statusOfLong: number): Promise<string> {
  const { hostname, port } = new URL(inject('clickhouseUrl'));
  const proxy = createServer((request, response) => {
    const { method, headers, url: path = '' } = request;
    if (path.length > 12_000) return void request.resume().on('end', () => response.writeHead(statusOfLong).end());
    const upstream = requestHttp({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    request.pipe(upstream);
  });
  onTestFinished(() => void proxy.close().closeAllConnections());
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test.each([
  { status: 414, end: 'failed' },
  { status: 502, end: undefined },
])('when a proxy answers the query of one client with $status, all others go on', async ({ status, end }) => {
  const proxied = await startQuery(await proxyWithStatus(status), { STREAM_INTERVAL_MS: '50' });
  const proxiedStreams = await listenTo(proxied);
  try {
    const long = await proxiedStreams.open(`?event[ne]=${'x'.repeat(8_000)}`);
    const others = [await proxiedStreams.open(), await proxiedStreams.open('', { workspace: 'b' })];
    for (let round = 1; round <= 2; round += 1) {
      const [own, ofOther] = [anEvent(), anEvent()];
      await proxied.store('a', [own]);
      await proxied.store('b', [ofOther]);
      for (const stream of others) await eventually(() => stream.events.length, PATIENCE).toBe(round);
    }
    if (end) await long.ended;
    await eventually(() => metric(proxied, 'sluice_stream_ended_total{reason="failed"}'), PATIENCE).toBe(end ? 1 : 0);
    expect(long.problems).toEqual(end ? [{ code: 'invalid_request', detail: 'The parameters are too long.' }] : []);
    expect(long.events).toEqual([]);
  } finally {
    await proxiedStreams.closeAll();
    await proxied.stop();
  }
});

test('streams go on when ClickHouse has nothing left of the newest blocks', async () => {
  await start();
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
  await start(createDatabase);
  const stream = await streams.open();
  for (const event of someEvents(20)) await query.store('a', [event]);
  await eventually(() => stream.events.length, PATIENCE).toBe(20);
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
  await start(createDatabase);
  await command('ALTER TABLE schema_migrations DELETE WHERE number = 15');
  const { status, body } = await query.get('/events/stream');
  expect([status, body.code]).toEqual([503, 'store_unavailable']);
});

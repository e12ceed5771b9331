import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { sluice, startSluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startLoad } from '../kit/load.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { entryOf, startRangedServer } from '../kit/ranged-server.ts';
import { startReaders, untilBothGoOn } from '../kit/readers.ts';
import type { EventPage } from '../kit/records.ts';
import { startStatementProxy } from '../kit/statement-proxy.ts';
import { StreamFollower, untilKnown } from '../kit/stream-follower.ts';
import { together } from '../kit/together.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

const PARTITIONS = 6;

const FIXED_USERS = 12;
const FIXED_EVENTS_PER_USER = 10;
const HOUR_MS = 3_600_000;
const PAUSE_MS = 250;

/** Reads whose answers stay the same: all of their events are stored before anything else happens. */
const FIXED_PATHS = [
  '/events?groupId=fixed&limit=200',
  '/events/series?startDate=2026-01-01&endDate=2026-01-31&groupId=fixed',
  '/events/series?startDate=2026-01-01&endDate=2026-01-31&groupId=fixed&measure=users',
  '/users?properties.plan=fixed&orderByField=lastSeenAt&limit=50',
  '/users/fixed-3',
  '/organizations/fixed/users?limit=50',
];

async function submitFixed(running: Pipeline): Promise<void> {
  for (let user = 0; user < FIXED_USERS; user += 1) {
    const foreignUserId = `fixed-${user}`;
    const events = Array.from({ length: FIXED_EVENTS_PER_USER }, (_, index) => ({
      event: 'fixed',
      timestamp: new Date(Date.UTC(2026, 0, 5) + (user + index * 13) * HOUR_MS).toISOString(),
    }));
    await running.submit({ foreignUserGroupId: 'fixed', foreignUserId, events });
    const path = '/v1/public/users';
    await running.submit({ foreignId: foreignUserId, properties: { plan: 'fixed' } }, { path });
  }
}

/** Events that are never deleted, submitted one request after the other. Each request is repeated until it is accepted. */
function startCounted(running: Pipeline) {
  let isRunning = true;
  const accepted: string[] = [];
  let sent = 0;
  async function submit(): Promise<void> {
    while (isRunning) {
      const events = Array.from({ length: 5 }, () => ({ event: 'counted', uuid: randomUUID() }));
      const body = { foreignUserGroupId: 'counted', events };
      sent += events.length;
      for (;;) {
        const { status } = await running.submit(body);
        if (status === 202) break;
        if (status !== 503) throw new Error(`an event got ${status}`);
        await delay(PAUSE_MS);
      }
      accepted.push(...events.map(({ uuid }) => uuid));
      await delay(PAUSE_MS);
    }
  }
  const ended = submit();
  return {
    accepted: () => accepted,
    sent: () => sent,
    async [Symbol.asyncDispose]() {
      isRunning = false;
      await ended;
    },
  };
}

type Counted = ReturnType<typeof startCounted>;

/** Reads all the time what is known to be right, and keeps what was not. */
function startChecks(running: Pipeline, fixed: ReadonlyMap<string, string>, counted: Counted) {
  const wrong: string[] = [];
  let isRunning = true;
  let rounds = 0;
  /** How many of the growing events are known to be stored where requests read. */
  let floor = 0;
  let isChanging = false;

  async function checkFixed(path: string): Promise<void> {
    const { status, body } = await running.get(path);
    const text = JSON.stringify(body);
    if (status !== 200 || text !== fixed.get(path)) wrong.push(`${path}: ${status} ${text}`);
  }

  async function checkCounted(): Promise<void> {
    const before = floor;
    const { status, body } = await running.get<EventPage>('/events?groupId=counted&limit=0');
    // It may have been lowered meanwhile.
    const least = Math.min(before, floor);
    const total = body.total ?? Number.NaN;
    if (status !== 200 || !(total >= least && total <= counted.sent())) {
      wrong.push(`${status}: ${total} events of ${counted.sent()}, at least ${least}`);
    } else if (!isChanging) floor = Math.max(floor, total);
  }

  async function keepChecking(check: () => Promise<void>): Promise<void> {
    while (isRunning) {
      await check().catch((error) => void wrong.push(String(error)));
      await delay(PAUSE_MS);
    }
  }

  async function checkAllFixed(): Promise<void> {
    for (const path of FIXED_PATHS) await checkFixed(path);
    rounds += 1;
  }

  const ended = Promise.all([checkAllFixed, checkCounted].map(keepChecking));
  return {
    /** From now on requests may read servers that are known to have so many of the growing events. */
    changing(stored: number) {
      floor = Math.min(floor, stored);
      isChanging = true;
    },
    /** No request reads the servers from before any more. */
    changed() {
      isChanging = false;
    },
    async more() {
      const before = rounds;
      await eventually(() => rounds).toBeGreaterThan(before + 1);
    },
    async stop(): Promise<readonly string[]> {
      isRunning = false;
      await ended;
      return wrong;
    },
    async [Symbol.asyncDispose]() {
      isRunning = false;
      await ended;
    },
  };
}

const copyTo = (name: string) => ['servers', 'copy', '--from', 'a1', '--to', name, '--yes'];

test('one server is replaced by two with half of its partitions each, under load: no read fails or is wrong', async () => {
  await using a1 = await startRangedServer();
  await using b1 = await startRangedServer();
  await using b2 = await startRangedServer();
  const one = entryOf(a1);
  const two = { b1: entryOf(b1, '0-2'), b2: entryOf(b2, '3-5') };
  const unread = { b1: { ...two.b1, serves: false }, b2: { ...two.b2, serves: false } };
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: one.url,
    name: 'split',
    servers: { a1: one },
    // On a busy machine a server may take more than a minute to catch up.
    envOf: { 'query-api': { READ_STALE_MS_MAX: '600000' } },
  });
  const { database } = running;
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  const file = String(running.environment['CLICKHOUSE_SERVERS_FILE']);
  const expectRight = async () => {
    expect(await sluice(running, ['servers', 'check', file])).toMatchObject({ code: 0 });
  };
  // On a busy machine they may lag, which counts as wrong.
  const expectStates = async (...states: readonly string[]) => {
    const { output } = await sluice(running, ['servers', 'status']);
    expect(output.match(/^[ab]\d +\w+ +\S+ +(yes|no)/gm)?.map((row) => row.replaceAll(/ +/g, ' '))).toEqual(states);
  };

  await submitFixed(running);
  await running.settled(FIXED_USERS * FIXED_EVENTS_PER_USER);
  await running.drained();
  const fixed = new Map<string, string>();
  for (const path of FIXED_PATHS) fixed.set(path, JSON.stringify((await running.get(path)).body));
  expect(fixed.get('/events?groupId=fixed&limit=200')).toContain(`"total":${FIXED_USERS * FIXED_EVENTS_PER_USER}`);

  await using counted = startCounted(running);
  const follower = new StreamFollower(() => query.url, '?groupId=counted', running.key);
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 3 });
  const paths = ['/events?limit=20', '/users?orderByField=firstSeenAt&limit=5'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  await using checks = startChecks(running, fixed, counted);
  const more = async () => {
    await untilBothGoOn(load, readers, { accepted: 50, answered: 5 });
    await checks.more();
  };
  await more();

  let kill: (() => void) | undefined;
  await using proxy = await startStatementProxy(String(two.b1.url), async (name, moment) => {
    if (`${moment} ${name}` === 'after record-events') kill?.();
  });
  await running.writeServers({ a1: one, ...unread, b1: { ...unread.b1, url: proxy.url } });
  await expectRight();
  const killed = startSluice(running, copyTo('b1'));
  kill = () => killed.child.kill('SIGKILL');
  await killed.ended;
  kill = undefined;
  // As after twenty seconds of silence.
  await readClickHouse(
    two.b1.url,
    "INSERT INTO copies SELECT run, 'ended', source, source_id, '', 0, [], recorded_at + 1 FROM copies ORDER BY recorded_at DESC LIMIT 1",
    { database },
  );
  await running.writeServers({ a1: one, ...unread });
  await more();
  expect(await sluice(running, copyTo('b1'))).toEqual({
    code: 0,
    output: expect.stringMatching(/it goes on where it was broken off.*b1 is complete/s),
  });
  expect(await sluice(running, copyTo('b2'))).toMatchObject({ code: 0 });
  await expectRight();

  await running.startWriter('b1');
  await running.startWriter('b2');
  await expectStates('a1 complete all yes', 'b1 complete 0-2 no', 'b2 complete 3-5 no');
  for (const { url } of Object.values(two)) await untilKnown([follower], url, database);
  const storedIn = (url: string) =>
    readClickHouse(url, "SELECT count() FROM events WHERE group_id = 'counted'", { database }).then(Number);
  const accepted = counted.accepted().length;
  await until('the new servers to have what was accepted', async () => {
    const [first, second] = await Promise.all([storedIn(two.b1.url), storedIn(two.b2.url)]);
    return first + second >= accepted;
  });
  expect(accepted).toBeGreaterThan(0);
  checks.changing(accepted);
  await running.writeServers({ a1: { ...one, serves: false }, ...two });
  await expectRight();
  await eventually(() => follower.moves.map(({ from, to }) => `${from} to ${to}`)).toEqual(['a1 to b1+b2']);
  await more();
  checks.changed();
  await more();
  await expectStates('a1 complete all no', 'b1 complete 0-2 yes', 'b2 complete 3-5 yes');

  await running.writeServers(two);
  await running.services.writer.stop();
  await a1.engine.kill9();
  await more();
  await expectRight();
  await expectStates('b1 complete 0-2 yes', 'b2 complete 3-5 yes');

  expect(await checks.stop(), query.log().slice(-6_000)).toEqual([]);
  expect(await readers.stop(), query.log().slice(-6_000)).toEqual([]);
  await counted[Symbol.asyncDispose]();
  const tally = await load.stop();
  await running.drained();
  expect((await running.get<EventPage>('/events?groupId=counted&limit=0')).body.total).toBe(counted.accepted().length);
  const uuids = () => new Set(follower.received.map((identity) => identity.split(' ')[0]));
  await until('all events to be streamed', async () => new Set(counted.accepted()).isSubsetOf(uuids()));
  await follower.stop();
  expect([follower.refusals, follower.problems]).toEqual([[], []]);
  for (const [url, range] of [
    [two.b1.url, '0 AND 2'],
    [two.b2.url, '3 AND 5'],
  ] as const) {
    const misplaced = `SELECT count() FROM events WHERE CRC32(toString(uuid)) % ${PARTITIONS} NOT BETWEEN ${range}`;
    expect(await readClickHouse(url, misplaced, { database })).toBe('0');
  }
  const all = await together(two.b1.url, [b2.relay.port], database);
  await expectExactlyOnce({ ...running, database: all }, two.b1.url, tally);
}, 900_000);

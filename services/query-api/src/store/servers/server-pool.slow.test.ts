import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { expectInTime } from '@sluice/shared/testing/until';
import { afterEach, expect, inject, test } from 'vitest';
import { metric } from '../../testing/load.ts';
import { type Mirror, type Mirrors, startMirrors, valuesByServer } from '../../testing/mirrors.ts';
import { anEvent, DELETIONS_FORGOTTEN_MS } from '../../testing/query-service.ts';

let service: (Mirrors & { readonly a1: Mirror; readonly a2: Mirror }) | undefined;

afterEach(async () => {
  await service?.stop();
  service = undefined;
});

/** Starts the app over two mirrors; each has an event of its own, by which one sees which was read. */
async function startTwo(env?: Readonly<Record<string, string>>) {
  service = await startMirrors(inject('clickhouseUrl'), ['a1', 'a2'], env);
  for (const { name, store } of service.mirrors) await store('a', [anEvent({ event: `of ${name}` })]);
  return service;
}

/** Returns the name of the mirror that a request has read, or the status of the response. */
async function readBy({ get }: Mirrors, url = '/events?limit=1'): Promise<string> {
  const { status, body } = await get(url);
  return status === 200 ? String(body.results[0]?.['event']).slice('of '.length) : String(status);
}

test('requests read the first server of the file, and no other one', async () => {
  const mirrors = await startTwo();
  for (let request = 0; request < 5; request += 1) expect(await readBy(mirrors)).toBe('a1');
  expect(mirrors.a2.queries()).toBe(0);
});

test('when a server is gone, its requests read another one, and none gets 503', async () => {
  const mirrors = await startTwo();
  expect(await readBy(mirrors)).toBe('a1');
  mirrors.a1.behaviour = 'refuses';
  for (let request = 0; request < 20; request += 1) expect(await readBy(mirrors)).toBe('a2');
  mirrors.a2.behaviour = 'refuses';
  expect(await readBy(mirrors)).toBe('503');
  mirrors.a2.behaviour = 'answers';
  await eventually(() => readBy(mirrors)).toBe('a2');
  // It stays there when the first one is back.
  mirrors.a1.behaviour = 'answers';
  await eventually(async () => (await mirrors.app.inject('/readyz')).statusCode).toBe(200);
  expect(await readBy(mirrors)).toBe('a2');
});

test('a server that is silent before or during queries is given up while the other one answers', async () => {
  const mirrors = await startTwo();
  expect(await readBy(mirrors)).toBe('a1');
  mirrors.a1.behaviour = 'is silent';
  const found = await Promise.all(Array.from({ length: 5 }, () => readBy(mirrors)));
  expect(new Set(found)).toEqual(new Set(['a2']));
  // From now on nobody waits for it: only polls do.
  const before = mirrors.a1.queries();
  expect(await readBy(mirrors)).toBe('a2');
  expect(mirrors.a1.queries()).toBe(before);
  mirrors.a1.behaviour = 'answers';
  mirrors.a2.behaviour = 'is silent';
  await eventually(() => readBy(mirrors)).toBe('a1');
});

test('a server that was given up is asked once more when there is no other one', async () => {
  const mirrors = await startTwo();
  expect(await readBy(mirrors)).toBe('a1');
  mirrors.a1.behaviour = 'is silent';
  await eventually(() => readBy(mirrors)).toBe('a2');
  // The one that fails answers again by the time that the next poll of the silent one begins.
  mirrors.a2.behaviour = 'refuses';
  const request = readBy(mirrors);
  await delay(100);
  mirrors.a1.behaviour = 'answers';
  expect(await request).toBe('a1');
});

test('when all have failed, a request tries those again that respond a moment later', async () => {
  const mirrors = await startTwo();
  expect(await readBy(mirrors)).toBe('a1');
  mirrors.a2.behaviour = 'refuses';
  mirrors.a1.behaviour = 'holds requests';
  const before = mirrors.a1.queries();
  const begun = readBy(mirrors);
  await eventually(mirrors.a1.queries).toBeGreaterThan(before);
  // The request fails there, and those that come after it do from the start.
  mirrors.a1.behaviour = 'refuses';
  const after = readBy(mirrors);
  await delay(250);
  mirrors.a1.behaviour = 'answers';
  expect([await begun, await after]).toEqual(['a1', 'a1']);
});

test('a server that is slow is waited for while no other one can be read in its place', async () => {
  const mirrors = await startTwo();
  await mirrors.a2.identify({ state: 'filling' });
  await eventually(() => valuesByServer(mirrors, 'sluice_query_server_readable')).toEqual({ a1: 1, a2: 0 });
  mirrors.a1.behaviour = 'is silent';
  const request = readBy(mirrors);
  // By then it would be given up for another one.
  await delay(5_000);
  expect(await valuesByServer(mirrors, 'sluice_query_given_up_servers_total')).toEqual({ a1: 0, a2: 0 });
  await mirrors.a2.identify();
  expect(await request).toBe('a2');
});

test('a request whose server fails after the first rows begins again at another one, before anything is sent', async () => {
  const mirrors = await startTwo();
  const urls = [
    '/events?limit=1',
    '/events?limit=0',
    '/events/series?startDate=2026-02-27&endDate=2026-03-04&groupBy=event',
    '/events/retention?startDate=2026-02-01&endDate=2026-03-31&interval=month',
    '/events/names',
  ];
  // Each mirror has an event of its own.
  const textOf = (text: string) => text.replace(/"uuid":"[^"]*"/, '').replaceAll(/of a[12]/g, '');
  for (const url of urls) {
    const expected = await mirrors.get(url);
    expect([url, expected.status]).toEqual([url, 200]);
    // They stay at the server that they have gone on at.
    const reading = (await readBy(mirrors)) === 'a1' ? mirrors.a1 : mirrors.a2;
    reading.behaviour = 'breaks off after the first rows';
    const before = reading.queries();
    const { status, text } = await mirrors.get(url);
    expect(reading.queries()).toBeGreaterThan(before);
    expect({ url, status, text: textOf(text) }).toEqual({ url, status: 200, text: textOf(expected.text) });
    reading.behaviour = 'answers';
  }
});

test('all queries of a request read the same server', async () => {
  const mirrors = await startTwo();
  await mirrors.a2.store('a', [anEvent({ event: 'of a2' }), anEvent({ event: 'of a2' })]);
  mirrors.a1.behaviour = 'refuses';
  const { body } = await mirrors.get('/events?limit=2');
  expect([body.results.length, body.total]).toEqual([2, 3]);
});

test('a server is left out while its record is not that of the file, or it is not complete', async () => {
  const mirrors = await startTwo();
  for (const identity of [{ server: 'a3' }, { partitions: '0-23' }, { state: 'filling' }, { state: 'incomplete' }]) {
    await mirrors.a1.identify(identity);
    await eventually(() => readBy(mirrors)).toBe('a2');
    await mirrors.a1.identify();
    await mirrors.a2.identify({ state: 'filling' });
    await eventually(() => readBy(mirrors)).toBe('a1');
    await mirrors.a2.identify();
  }
  // What lacks messages is read where nothing else is.
  await mirrors.a1.identify({ state: 'incomplete' });
  mirrors.a2.behaviour = 'refuses';
  await eventually(() => readBy(mirrors)).toBe('a1');
});

test('a server without tables, or whose writers have recorded nothing, is not read', async () => {
  const mirrors = await startTwo();
  await mirrors.a1.clickHouse.command({ query: 'TRUNCATE TABLE database_identity' });
  await eventually(() => readBy(mirrors)).toBe('a2');
  await mirrors.a1.identify();
  await mirrors.a2.clickHouse.command({ query: 'DROP TABLE events' });
  await mirrors.a2.clickHouse.command({ query: 'DROP TABLE storing_progress' });
  await eventually(() => readBy(mirrors)).toBe('a1');
  await mirrors.a1.clickHouse.command({ query: 'ALTER TABLE schema_migrations DELETE WHERE number = 5' });
  await eventually(() => readBy(mirrors)).toBe('503');
  const readiness = async () => (await mirrors.app.inject('/readyz')).body;
  await eventually(readiness).toMatch(/a1: does not have the tables of this version yet; a2: does not respond/);
});

test('a server that is too far behind the other one is not read; if the other one is away, nothing is', async () => {
  const mirrors = await startTwo({ READ_LAG_MS_MAX: '60000', READ_STALE_MS_MAX: '600000' });
  await mirrors.a2.progress(120_000);
  await mirrors.a1.progress(60_000);
  expect(await readBy(mirrors)).toBe('a1');
  await mirrors.a1.progress(300_000);
  await eventually(() => readBy(mirrors)).toBe('a2');
  // The one that is read falls behind last: a look between the two must not choose the other one.
  await mirrors.a1.progress(870_000);
  await mirrors.a2.progress(900_000);
  expect(await readBy(mirrors)).toBe('a2');
  mirrors.a1.behaviour = 'refuses';
  await eventually(() => readBy(mirrors)).toBe('503');
});

test('a user is hidden as soon as any server has the deletion, in pages, totals, lists and alone', async () => {
  const mirrors = await startTwo();
  const version = Date.UTC(2026, 2, 2) * 1_000;
  const times = { first_seen_at: '2026-03-01 00:00:00', last_seen_at: '2026-03-01 00:00:00', version: 1 };
  for (const { store, insert } of mirrors.mirrors) {
    await store('a', [anEvent({ event: 'of ada', userId: 'ada' }), anEvent({ event: 'of bob', userId: 'bob' })]);
    const users = ['ada', 'bob'].map((id) => ({ workspace_id: 'a', kind: 'user', id, other_id: '', ...times }));
    await insert('entities', users);
  }
  const seen = async () => {
    const events = (await mirrors.get('/events')).body;
    const users = (await mirrors.get('/users')).body;
    const alone = await mirrors.get('/users/ada');
    const counted = (await mirrors.get('/events?userId=ada&limit=0')).body.total;
    const names = events.results.map(({ event }) => event).filter((event) => event !== 'of a1');
    return {
      names: names.sort(),
      total: events.total,
      users: users.results.map(({ foreignId }) => foreignId),
      alone: alone.status,
      counted,
    };
  };
  const both = { names: ['of ada', 'of bob'], total: 3, users: ['ada', 'bob'], alone: 200, counted: 1 };
  const withoutAda = { names: ['of bob'], total: 2, users: ['bob'], alone: 404, counted: 0 };
  expect(await seen()).toEqual(both);
  await mirrors.a2.insert('user_deletions', [{ workspace_id: 'a', user_id: 'ada', version }]);
  const pending = { workspace_id: 'a', user_id: 'ada', version, stored_at: Date.now() };
  await mirrors.a2.insert('pending_deletions', [pending]);
  await eventually(seen).toEqual(withoutAda);
  // Whether the server that is read has it as well or not, and when the other one is away.
  mirrors.a2.behaviour = 'refuses';
  expect(await seen()).toEqual(withoutAda);
  await mirrors.a1.insert('user_deletions', [{ workspace_id: 'a', user_id: 'ada', version }]);
  await mirrors.a1.insert('pending_deletions', [pending]);
  await eventually(seen).toEqual(withoutAda);
});

test('deletions that a statement cannot name all have requests wait, and bring nobody back', async () => {
  const mirrors = await startTwo();
  // In an address each of these characters is nine.
  const long = '\u6771'.repeat(150);
  const pending = Array.from({ length: 100 }, (_, index) => ({
    ...{ workspace_id: 'a', user_id: `${long}${index}`, version: 5, stored_at: Date.now() },
  }));
  await mirrors.a2.insert('pending_deletions', pending);
  await eventually(() => readBy(mirrors)).toBe('a2');
  mirrors.a2.behaviour = 'refuses';
  expect(await readBy(mirrors)).toBe('503');
  await mirrors.a1.insert('pending_deletions', pending);
  await eventually(() => readBy(mirrors)).toBe('a1');
});

test('many deletions of one workspace bring no user of another back, and none of its own', async () => {
  const mirrors = await startTwo();
  // The first server has what was sent forty seconds ago, and is still read.
  await mirrors.a1.progress(40_000);
  await mirrors.a2.progress();
  for (const { store } of mirrors.mirrors) {
    for (const workspace of ['a', 'b']) await store(workspace, [anEvent({ event: 'of ada', userId: 'ada' })]);
  }
  const read = async (workspace: string) => {
    const { status, body } = await mirrors.get('/events?event=of ada&limit=0', workspace);
    return status === 200 ? body.total : JSON.stringify(body);
  };
  expect([await read('a'), await read('b')]).toEqual([1, 1]);
  const now = Date.now();
  const version = now * 1_000;
  const rows = [
    { workspace_id: 'a', user_id: 'ada', version, stored_at: now - 30_000 },
    { workspace_id: 'b', user_id: 'ada', version, stored_at: now - 20_000 },
  ];
  await mirrors.a2.clickHouse.command({
    query: `INSERT INTO pending_deletions
      SELECT 'b', toString(number), 5, fromUnixTimestamp64Milli({at:Int64}) FROM numbers(10001)`,
    query_params: { at: now - 10_000 },
  });
  // Last, so that who knows these knows the others too.
  await mirrors.a2.insert('pending_deletions', rows);
  await eventually(async () => [await read('a'), await read('b')]).toEqual([0, 0]);
  mirrors.a2.behaviour = 'refuses';
  expect(await read('a')).toBe(0);
  expect(await read('b')).toContain('does not have the latest deletions yet');
  // Its own record says that it has what was sent until now.
  await mirrors.a1.insert('pending_deletions', rows.slice(1));
  await mirrors.a1.clickHouse.command({
    query: `INSERT INTO pending_deletions SELECT 'b', toString(number), 5, now64(3) FROM numbers(10001)`,
  });
  await mirrors.a1.progress();
  await eventually(() => read('b')).toBe(0);
});

test('the shortest retention of any server counts', async () => {
  const mirrors = await startTwo();
  const old = anEvent({ event: 'of a1', timestampMs: Date.now() - 40 * 86_400_000 });
  await mirrors.a1.store('a', [old]);
  const total = async () => (await mirrors.get('/events?event=of a1&limit=0')).body.total;
  expect(await total()).toBe(2);
  await mirrors.a2.insert('retention', [{ workspace_id: 'a', days: 30, set_at: Date.now() * 1_000 }]);
  await eventually(total).toBeLessThan(2);
  mirrors.a2.behaviour = 'refuses';
  expect(await total()).toBeLessThan(2);
});

test('a change of the file is in force within a second; what is not valid changes nothing', async () => {
  const mirrors = await startTwo();
  expect(await readBy(mirrors)).toBe('a1');
  await mirrors.writeFile(['a2']);
  await eventually(() => readBy(mirrors)).toBe('a2');
  await mirrors.writeFile([]);
  await eventually(() => readBy(mirrors)).toBe('a2');
  await mirrors.writeFile(['a1']);
  await eventually(() => readBy(mirrors)).toBe('a1');
});

test('a file whose ranges contradict the number of partitions that the servers say is not put in force', async () => {
  const mirrors = await startTwo();
  await mirrors.a1.insert('topic_partitions', [{ topic: 't', partitions: 8 }]);
  const isValid = () => metric(mirrors, 'sluice_servers_file_valid');
  // A request waits for a poll that is no older than half a second.
  await delay(DELETIONS_FORGOTTEN_MS);
  expect(await readBy(mirrors)).toBe('a1');
  await mirrors.writeFile(['a1'], '0-8');
  await eventually(isValid).toBe(0);
  expect(await readBy(mirrors)).toBe('a1');
  await mirrors.writeFile(['a2']);
  await eventually(isValid).toBe(1);
  await eventually(() => readBy(mirrors)).toBe('a2');
});

test('a request that has begun goes on at a server that is taken out of the file, and those after it read another one', async () => {
  const mirrors = await startTwo();
  expect(await readBy(mirrors)).toBe('a1');
  mirrors.a1.behaviour = 'holds requests';
  const before = mirrors.a1.queries();
  const begun = readBy(mirrors);
  await eventually(mirrors.a1.queries).toBeGreaterThan(before);
  await mirrors.writeFile(['a2']);
  const known = async () => Object.keys(await valuesByServer(mirrors, 'sluice_query_server_readable'));
  await eventually(known).toEqual(['a2']);
  expect(await readBy(mirrors)).toBe('a2');
  mirrors.a1.behaviour = 'answers';
  expect(await begun).toBe('a1');
  // One that does not respond is not waited for.
  await mirrors.writeFile(['a1', 'a2']);
  await eventually(known).toEqual(['a1', 'a2']);
  mirrors.a2.behaviour = 'is silent';
  const startedAt = performance.now();
  const waiting = readBy(mirrors);
  await mirrors.writeFile(['a1']);
  expect(await waiting).toBe('a1');
  // Half of what a request that reads it may take.
  expectInTime('the request', performance.now() - startedAt, 30_000);
});

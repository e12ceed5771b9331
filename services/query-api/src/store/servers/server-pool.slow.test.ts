import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { anEvent } from '../../testing/query-service.ts';
import { readBy, startTwoMirrors } from '../../testing/two-mirrors.ts';

test('requests read the first server of the file, and no other one', async () => {
  const mirrors = await startTwoMirrors();
  for (let request = 0; request < 5; request += 1) expect(await readBy(mirrors)).toBe('a1');
  expect(mirrors.a2.queries()).toBe(0);
});

test('when a server is gone, its requests read another one, and none gets 503', async () => {
  const mirrors = await startTwoMirrors();
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
  const mirrors = await startTwoMirrors();
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

test('all queries of a request read the same server', async () => {
  const mirrors = await startTwoMirrors();
  await mirrors.a2.store('a', [anEvent({ event: 'of a2' }), anEvent({ event: 'of a2' })]);
  mirrors.a1.behaviour = 'refuses';
  const { body } = await mirrors.get('/events?limit=2');
  expect([body.results.length, body.total]).toEqual([2, 3]);
});

test('a server is left out while its record is not that of the file, or it is not complete', async () => {
  const mirrors = await startTwoMirrors();
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

test('a server that is too far behind the other one is not read; if the other one is away, nothing is', async () => {
  const mirrors = await startTwoMirrors({ READ_LAG_MS_MAX: '60000', READ_STALE_MS_MAX: '600000' });
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
  const mirrors = await startTwoMirrors();
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

test('the shortest retention of any server counts', async () => {
  const mirrors = await startTwoMirrors();
  await mirrors.a1.store('a', [anEvent({ event: 'old', timestampMs: Date.now() - 40 * 86_400_000 })]);
  const total = async () => (await mirrors.get('/events?event=old&limit=0')).body.total;
  expect(await total()).toBe(1);
  const keep = (mirror: typeof mirrors.a1, days: number) =>
    mirror.insert('retention', [{ workspace_id: 'a', days, set_at: Date.now() * 1_000 }]);
  await keep(mirrors.a1, 90);
  await keep(mirrors.a2, 30);
  await eventually(total).toBe(0);
  mirrors.a2.behaviour = 'refuses';
  expect(await total()).toBe(0);
});

test('a change of the file is in force within a second; what is not valid changes nothing', async () => {
  const mirrors = await startTwoMirrors();
  expect(await readBy(mirrors)).toBe('a1');
  await mirrors.writeFile(['a2']);
  await eventually(() => readBy(mirrors)).toBe('a2');
  await mirrors.writeFile([]);
  await eventually(() => readBy(mirrors)).toBe('a2');
  await mirrors.writeFile(['a1']);
  await eventually(() => readBy(mirrors)).toBe('a1');
});

test('a request whose server fails after the first rows begins again at another one, before anything is sent', async () => {
  const mirrors = await startTwoMirrors();
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

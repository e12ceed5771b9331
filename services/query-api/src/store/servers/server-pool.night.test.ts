import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { expectInTime } from '@sluice/shared/testing/until';
import { expect, test } from 'vitest';
import { metric } from '../../testing/load.ts';
import { valuesByServer } from '../../testing/mirrors.ts';
import { anEvent, DELETIONS_FORGOTTEN_MS } from '../../testing/query-service.ts';
import { readBy, startTwoMirrors } from '../../testing/two-mirrors.ts';

test('a server that was given up is asked once more when there is no other one', async () => {
  const mirrors = await startTwoMirrors();
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
  const mirrors = await startTwoMirrors();
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
  const mirrors = await startTwoMirrors();
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

test('a server without tables, or whose writers have recorded nothing, is not read', async () => {
  const mirrors = await startTwoMirrors({}, createDatabase);
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

test('deletions that a statement cannot name all have requests wait, and bring nobody back', async () => {
  const mirrors = await startTwoMirrors();
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
  const mirrors = await startTwoMirrors();
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

test('a file whose ranges contradict the number of partitions that the servers say is not put in force', async () => {
  const mirrors = await startTwoMirrors();
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
  const mirrors = await startTwoMirrors();
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

import { randomUUID } from 'node:crypto';
import { loadConfig } from '@sluice/shared/config';
import { DeadLetters, type StoredDeadLetter } from '@sluice/storage/dead-letters';
import { expect, inject, test } from 'vitest';
import { NOWHERE, startServers, type TestServer } from '../testing/test-servers.ts';
import { deadLettersConfig } from './dead-letters-command.ts';
import { MirroredDeadLetters } from './mirrored-dead-letters.ts';

const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };

const YESTERDAY_MS = Date.now() - 86_400_000;

/** A dead letter of a server, which recorded it so many seconds after the same time yesterday. */
function letterAt(seconds: number, id: string, fields: object = {}) {
  const place = { kind: 'events', format: '1', topic: 't', partition: 0, offset: 1, line: 0, row: '{}' };
  return { id, recorded_at: new Date(YESTERDAY_MS + seconds * 1_000).toISOString(), ...place, ...fields };
}

const isMarked = async (server: TestServer, id: string) =>
  (
    await server.read<{ n: number }>(
      'SELECT replayed_at IS NOT NULL AS n FROM dead_letters FINAL WHERE id = {id:String}',
      { id },
    )
  )[0]?.n;

test('the dead letters of all servers are one list, in which one that any server calls replayed is replayed', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  await a1.insert('dead_letters', letterAt(10, 'both'), letterAt(40, 'replayed there'), letterAt(30, 'only a1'));
  await a2.insert('dead_letters', letterAt(50, 'both'), letterAt(20, 'replayed there', { replayed_at: '2026-03-02' }));
  const ids = async (...args: string[]) => {
    const { stdout } = await servers.sluice(['dead-letters', 'list', ...args]);
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split('  ')[0]);
  };
  expect(await ids()).toEqual(['both', 'only a1', '2 dead letters']);
  expect(await ids('--all')).toEqual(['both', 'replayed there', 'only a1', '3 dead letters']);
  // What is left out does not count.
  expect(await ids('--limit', '2')).toEqual(['both', 'only a1', '2 dead letters (there may be more: --limit)']);
  expect(await ids('--server', 'a1')).toEqual(['replayed there', 'only a1', 'both', '3 dead letters']);
  expect((await servers.sluice(['dead-letters', 'show', 'replayed there'])).stdout).toMatch(/^replayedAt +2026-03-02/m);
});

test('a replay is marked on every server that has the dead letter and answers, and the others are named', async () => {
  await using servers = await startServers(engines, ['a1', 'a2', 'a3']);
  const { a1, a2, a3 } = servers.of;
  const row = JSON.stringify({ workspace_id: 'a', timestamp: 0, uuid: randomUUID(), event: 'e', received_at: 1 });
  const letter = (seconds: number) => letterAt(seconds, 'one', { topic: servers.topics.events, row });
  for (const server of [a1, a2]) await server.insert('dead_letters', letter(server === a1 ? 1 : 2));
  await servers.writeFile({ a1: {}, a2: {}, a3: {}, gone: { url: NOWHERE } });
  const { code, stdout, stderr } = await servers.sluice(['dead-letters', 'replay', '--all']);
  expect([code, stdout]).toEqual([1, '1 replayed\n']);
  expect(stderr).toMatch(/^gone did not answer: .*ECONNREFUSED.* It has no mark of what was replayed/);
  expect(await Promise.all([a1, a2, a3].map((server) => isMarked(server, 'one')))).toEqual([1, 1, undefined]);
  const admin = servers.kafka.admin();
  await admin.connect();
  const offsets = await admin.fetchTopicOffsets(servers.topics.events);
  await admin.disconnect();
  expect(offsets.reduce((sum, { high }) => sum + Number(high), 0)).toBe(1);
  expect((await servers.sluice(['dead-letters', 'replay', '--all'])).stdout).toBe('nothing to replay\n');
});

test('page by page, each dead letter comes once, though servers list them in different orders', async () => {
  await using servers = await startServers(engines, ['a1', 'a2']);
  const { a1, a2 } = servers.of;
  const ids = Array.from({ length: 60 }, (_, index) => `letter ${String(index).padStart(2, '0')}`);
  const letters = (some: readonly string[], seconds: (index: number) => number, fields = {}) =>
    some.map((id, index) => letterAt(seconds(index), id, fields));
  await a1.insert('dead_letters', ...letters(ids, (index) => index));
  await a2.insert('dead_letters', ...letters(ids.slice(10), (index) => 60 - index));
  // More than two pages that another server calls replayed come first.
  const replayed = Array.from({ length: 15 }, (_, index) => `replayed ${index}`);
  await a1.insert('dead_letters', ...letters(replayed, () => 100));
  await a2.insert('dead_letters', ...letters(replayed, () => 100, { replayed_at: new Date().toISOString() }));
  const config = loadConfig(deadLettersConfig, { ...servers.env, CLICKHOUSE_URL: engines.clickhouseUrl });
  const mirrored = new MirroredDeadLetters(
    [a1, a2].map(({ name, client }) => ({ name, deadLetters: new DeadLetters(config, client, servers.kafka) })),
  );
  const found: string[] = [];
  for (let after: StoredDeadLetter | undefined; ; ) {
    const page = await mirrored.list({ limit: 7, replayed: false, after });
    found.push(...page.map(({ id }) => id));
    after = page.at(-1);
    if (!after) break;
  }
  expect(found).toHaveLength(60);
  expect(found.toSorted()).toEqual(ids);
});

test('without any server that answers, the reason is said', async () => {
  await using servers = await startServers(engines, ['a1']);
  await servers.writeFile({ a1: { url: NOWHERE }, a2: { url: 'http://127.0.0.1:2' } });
  const { code, stderr } = await servers.sluice(['dead-letters', 'list']);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^The dead letters cannot be reached \(.*ECONNREFUSED/)]);
});

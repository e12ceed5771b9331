import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import {
  compare,
  deadLetter,
  engines,
  event,
  NOON_US,
  nowUs,
  property,
  recorded,
  remove,
  SAME,
  seen,
  startFilled,
  storeSent,
  timeOf,
  uuidOf,
} from '../kit/comparable-servers.ts';
import { startStatementProxy } from '../kit/statement-proxy.ts';

test('two servers differ in many rows: the first ones are named', async () => {
  await using servers = await startFilled();
  const insert = `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
    SELECT 'a', '2026-03-02', reinterpretAsUUID(number + 10), 'e', 'u', '2026-03-02' FROM numbers(300000)`;
  await servers.of.a1.client.command({ query: insert });
  const { code, lines } = await compare(servers);
  expect(code).toBe(1);
  expect(lines).toContain('events             2026-03  300,003  3   differs');
  expect(lines.filter((line) => line.endsWith('only a1 has it'))).toHaveLength(10);
});

test('two servers are the same but for what came lately, which is not counted', async () => {
  await using servers = await startFilled();
  const { a1, a2 } = servers.of;
  await a1.insert('events', event(10, 'ann', nowUs()), event(11, 'new', nowUs()));
  await a1.insert(
    'entities',
    seen('user', 'ann', nowUs()),
    seen('user', 'new', nowUs()),
    seen('organization', 'acme', nowUs()),
  );
  await a1.insert('entity_properties', property('ann', 'team', nowUs()));
  // Set once: its version says the same in another way.
  await a1.insert('entity_properties', property('cid', 'team', 2_650_000_000_000_000 - nowUs()));
  await a2.insert('user_sightings', { workspace_id: 'a', user_id: 'bob', version: nowUs() });
  await a2.insert('dead_letters', deadLetter('three', { row: 'x', recorded_at: timeOf(nowUs()) }));
  await a2.insert('dead_letters', deadLetter('four', { row: `{"received_at":${nowUs()}}` }));
  const { lines, ...outcome } = await compare(servers);
  expect(outcome).toEqual(SAME);
  expect(lines).toContain('events             2026-03  3   3   same');
  expect(lines.at(-1)).toMatch(/^a1 and a2 are the same: 5 events/);
  // A server that is behind is compared up to where it is.
  await a1.insert('events', event(12, 'ann', nowUs() - 1_200_000_000));
  const behind = 'INSERT INTO storing_progress SELECT now64(3), now64(3) - toIntervalMinute(30), 0';
  await a2.client.command({ query: behind });
  expect(await compare(servers)).toMatchObject(SAME);
});

test('two servers are the same with a hundred thousand deletions that only one of them has', async () => {
  await using servers = await startFilled();
  const { a1, a2 } = servers.of;
  const many = (select: string) => `${select} FROM numbers(100000)`;
  for (const { client } of [a1, a2]) {
    await client.command({
      query: many(`INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
        SELECT 'a', '2026-03-02', reinterpretAsUUID(number + 10), 'e', 'u' || number, '2026-03-02'`),
    });
  }
  const deleted = many(`SELECT 'a', 'u' || number, ${nowUs()}`);
  await a1.client.command({ query: `INSERT INTO user_deletions (workspace_id, user_id, version) ${deleted}` });
  await remove(a1, 'events', "user_id LIKE 'u%'");
  const { lines, ...outcome } = await compare(servers);
  expect(outcome).toEqual(SAME);
  expect(lines).toContain('events             2026-03  3   3   same');
});

test('two servers are the same where one of them has erased what has expired', async () => {
  await using servers = await startFilled();
  const { a1, a2 } = servers.of;
  await a1.insert('retention', { workspace_id: 'a', days: 4_000 }, { workspace_id: '', days: 10_000 });
  await a2.insert('retention', { workspace_id: 'a', days: 1_500 });
  await remove(a2, 'events', 'toYear(timestamp) = 2020');
  const rejected = { kind: 'rejected', row: `{"received_at":${NOON_US}}` };
  await a1.insert('dead_letters', deadLetter('rejected', rejected));
  const { lines, ...outcome } = await compare(servers);
  expect(outcome).toEqual(SAME);
  expect(lines).toContain('events             2020     0   0   same');
  await remove(a2, 'events', `uuid = '${uuidOf(1)}'`);
  expect((await compare(servers)).code).toBe(1);
});

test('a slow server is waited for, and the command says so, before anything is sent to Kafka; what was interrupted goes on', async () => {
  await using servers = await startFilled();
  const { a1, a2 } = servers.of;
  await a1.insert('entities', seen('user', 'late'));
  await a1.insert('events', event(20, 'ann'));
  let waiting: PromiseWithResolvers<void> | undefined;
  await using proxy = await startStatementProxy(engines.clickhouseUrl, async (name, moment) => {
    if (name !== 'store-mended-entities' || moment !== 'after') return;
    waiting = Promise.withResolvers();
    await waiting.promise;
  });
  await servers.writeFile({ a1: {}, a2: { url: proxy.url } });
  /** Starts the command, and returns once the slow server has what it gets, and does not say so. */
  const startSlowly = async (version: number) => {
    waiting = undefined;
    const command = servers.start(['servers', 'compare', 'a1', 'a2', '--mend', '--yes']);
    const early = command.ended.then((outcome) => Promise.reject(new Error(JSON.stringify(outcome))));
    early.catch(() => undefined);
    await Promise.race([eventually(() => waiting !== undefined).toBe(true), early]);
    expect(await a2.read("SELECT max(version) AS version FROM entities WHERE id = 'late'")).toEqual([{ version }]);
    expect(await storeSent(servers)).toBe(0);
    return command;
  };

  const interrupted = await startSlowly(NOON_US);
  interrupted.child.kill('SIGINT');
  const { code: interruptedCode, stderr: why } = await interrupted.ended;
  expect([interruptedCode, why.split('\n').slice(-3)]).toEqual([
    130,
    ['Interrupted.', 'a1 and a2 could not be mended. Run the command again.', ''],
  ]);
  waiting?.resolve();
  // The user is the same on both by now, and is seen once more, so that the next command stores it again.
  await a1.insert('entities', seen('user', 'late', NOON_US + 1_000_000));
  const slow = await startSlowly(NOON_US + 1_000_000);
  let said = '';
  slow.child.stderr?.on('data', (text: string) => {
    said += text;
  });
  await eventually(() => said).toContain('mending: a2 stores users, organizations and memberships\n');
  waiting?.resolve();
  const { code, stdout } = await slow.ended;
  expect([code, stdout]).toEqual([0, expect.stringContaining('Mended. ')]);
  expect(await storeSent(servers)).toBe(1);
  expect(await compare(servers)).toMatchObject(SAME);
});

test('an interrupted comparison ends its statements, says so, and records nothing', async () => {
  await using servers = await startFilled(engines, { altersTables: true });
  const { a1, a2 } = servers.of;
  // Each block is a row, and takes a second. The command's account may read the view and not what it reads.
  await a1.client.command({ query: 'RENAME TABLE user_sightings TO sightings' });
  await a1.client.command({
    query: `CREATE VIEW user_sightings DEFINER = CURRENT_USER SQL SECURITY DEFINER AS
      SELECT sightings.* FROM system.numbers CROSS JOIN sightings WHERE sleepEachRow(1) = 0 SETTINGS max_block_size = 1`,
  });
  const statements = async () => {
    const running = `SELECT query_id FROM system.processes WHERE query_id LIKE 'sluice-compare/%' AND current_database = {database:String}`;
    return await a1.read(running, { database: a1.database });
  };
  const { child, ended } = servers.start(['servers', 'compare', 'a1', 'a2']);
  await eventually(async () => JSON.stringify(await statements())).toContain('checksums-user-sightings');
  child.kill('SIGINT');
  const { code, stdout, stderr } = await ended;
  expect([code, stdout]).toEqual([130, '']);
  expect(stderr.split('\n').slice(-3)).toEqual(['Interrupted.', 'a1 and a2 could not be compared.', '']);
  await eventually(statements).toEqual([]);
  expect([await recorded(a1), await recorded(a2)]).toEqual([[], []]);
});

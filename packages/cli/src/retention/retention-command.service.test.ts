import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { ArgumentsError } from '@sluice/shared/config/command-line';
import { recordRetention } from '@sluice/storage/clickhouse/retention-settings';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { NOWHERE, startServers, type TestServer } from '../testing/test-servers.ts';
import { parse, RetentionSettings, runRetentionCommand } from './retention-command.ts';

const NOW = Date.UTC(2026, 2, 10, 13);

let database: Awaited<ReturnType<typeof takeDatabase>>;
let client: ReturnType<typeof createClickHouse>;

beforeAll(async () => {
  database = await takeDatabase(inject('clickhouseUrl'));
  client = createClickHouse(database.config, { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 });
});
afterAll(async () => {
  await client.close();
  await database.release();
});

beforeEach(async () => {
  for (const table of ['events', 'retention']) await client.command({ query: `TRUNCATE TABLE ${table}` });
});

/** Runs the command; `reply` is what the operator says when asked. */
async function run(line: string, reply?: boolean) {
  const output: string[] = [];
  const terminal = {
    print: (text: string) => output.push(text),
    async confirm() {
      if (reply === undefined) throw new Error('nobody expects to be asked');
      return reply;
    },
  };
  const code = await runRetentionCommand(
    parse(line.split(' ')),
    [{ name: undefined, settings: new RetentionSettings(client) }],
    terminal,
    NOW,
  );
  return { code, output };
}

test('set and clear say how many events they hide, ask before they do, and list shows what is set', async () => {
  const values = ['2026-02-28 23:59:59.999', '2026-03-01', '2026-03-05', '2026-03-06', '2026-03-10'];
  await client.insert({
    table: 'events',
    values: values.map((timestamp) => ({ workspace_id: 'a', timestamp, event: 'e' })),
    format: 'JSONEachRow',
  });
  const hides = (date: string, events: number) =>
    `Events of a before ${date} are no longer returned, and are erased later: ${events} so far.`;
  expect(await run('set a 9', false)).toEqual({ code: 1, output: [hides('2026-03-01', 1), 'nothing was set'] });
  expect(await run('set a 9', true)).toEqual({ code: 0, output: [hides('2026-03-01', 1), 'a: 9 days'] });
  // Events that are hidden already do not count.
  expect(await run('set a 4 --yes')).toEqual({ code: 0, output: [hides('2026-03-06', 2), 'a: 4 days'] });
  expect(await run('set a 5')).toEqual({ code: 0, output: ['a: 5 days'] });
  expect(await run('set b 1 --yes')).toMatchObject({ code: 0 });
  expect((await run('list')).output).toEqual([
    'workspace     kept for  events from',
    '(all others)  for ever  -',
    'a             5 days    2026-03-05',
    'b             1 day     2026-03-09',
  ]);
  await recordRetention(client, '', 3);
  expect(await run('clear a', true)).toEqual({ code: 0, output: [hides('2026-03-07', 2), 'a: 3 days'] });
  expect(await run('clear b')).toEqual({ code: 0, output: ['b: 3 days'] });
  expect(await run('clear b')).toEqual({ code: 1, output: ['b has no retention of its own'] });
  expect((await run('list')).output).toEqual([
    'workspace     kept for  events from',
    '(all others)  3 days    2026-03-07',
  ]);
});

test('a thousand workspaces have a retention of their own at most; those can be changed', async () => {
  await client.command({
    query: "INSERT INTO retention (workspace_id, days) SELECT concat('w', toString(number)), 5 FROM numbers(1000)",
  });
  expect(await run('set other 5 --yes')).toMatchObject({
    code: 1,
    output: [expect.stringContaining('nothing was set')],
  });
  expect(await run('set w7 6')).toEqual({ code: 0, output: ['w7: 6 days'] });
});

describe('of several servers', () => {
  const engines = { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') };
  const daysOf = async (server: TestServer, workspace = 'acme') =>
    (
      await server.read<{ days: number }>('SELECT days FROM retention FINAL WHERE workspace_id = {workspace:String}', {
        workspace,
      })
    )[0]?.days;

  test('all get a setting or none does, and list shows the shortest and how they differ', async () => {
    await using servers = await startServers(engines, ['a1', 'a2']);
    const { a1, a2 } = servers.of;
    expect(await servers.sluice(['retention', 'set', 'acme', '90', '--yes'])).toMatchObject({ code: 0 });
    expect([await daysOf(a1), await daysOf(a2)]).toEqual([90, 90]);
    await servers.writeFile({ a1: {}, a2: { url: NOWHERE } });
    const refused = await servers.sluice(['retention', 'set', 'acme', '80', '--yes']);
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([
      1,
      '',
      expect.stringMatching(/\(a2: .*ECONNREFUSED/),
    ]);
    expect(await daysOf(a1)).toBe(90);

    await servers.writeFile({ a1: {}, a2: {} });
    expect(await servers.sluice(['retention', 'set', 'acme', '80', '--yes', '--server', 'a2'])).toMatchObject({
      code: 0,
    });
    await recordRetention(a1.client, '', 400);
    const listed = await servers.sluice(['retention', 'list']);
    expect(listed.stdout).toMatch(
      /^workspace.*\n\(all others\) +400 days .*\nacme +80 days .*\n\(all others\) differs: a1 400 days, a2 for ever\nacme differs: a1 90 days, a2 80 days\n$/,
    );
    expect(await servers.sluice(['retention', 'clear', 'acme'])).toMatchObject({ code: 0, stdout: 'acme: 400 days\n' });
    expect([await daysOf(a1), await daysOf(a2)]).toEqual([0, 0]);
  });

  test('what was set is named exactly when a server fails after another one was set', async () => {
    class Failing extends RetentionSettings {
      override async set(): Promise<void> {
        throw new Error('no space left');
      }
    }
    const settings = new RetentionSettings(client);
    const servers = [
      { name: 'a1', settings },
      { name: 'a2', settings: new Failing(client) },
      { name: 'a3', settings },
    ];
    const terminal = { print: () => {}, confirm: async () => true };
    await expect(runRetentionCommand(parse(['set', 'a', '9']), servers, terminal, NOW)).rejects.toThrow(
      'a has 9 days on a1 now, and not on a2, a3: a2: no space left. Queries use the shortest. Run the command again.',
    );
    const failingFirst = servers.slice(1);
    await expect(runRetentionCommand(parse(['set', 'a', '8']), failingFirst, terminal, NOW)).rejects.toThrow(
      'a2: no space left',
    );
    expect((await settings.read()).own).toEqual(new Map([['a', 9]]));
  });
});

describe('every wrong argument is named:', () => {
  test.each([
    ['set a', /Use list, set WORKSPACE DAYS/],
    ['set a 1 2', /Use list/],
    ['list a', /Use list/],
    ['clear', /Use list/],
    ['clear --all', /Use list/],
    ['set a/b 0', /WORKSPACE must be 1 to 100 letters.* DAYS must be at least 1\./],
    ['set a 36501', /DAYS must be at most 36500/],
    ['set a 1.5', /DAYS must be a number/],
    ['set a 1e3', /DAYS must be a number/],
    [`set ${'x'.repeat(101)} 1`, /WORKSPACE must be/],
  ])('%s', (line, message) => {
    expect(() => parse(line.split(' '))).toThrow(ArgumentsError);
    expect(() => parse(line.split(' '))).toThrow(message);
  });
});

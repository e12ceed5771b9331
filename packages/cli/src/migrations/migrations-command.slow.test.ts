import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startServers } from '../testing/test-servers.ts';

/** Gives a test a database that does not exist yet, and the command for it. */
function newDatabase(name: string) {
  const env = {
    ...inherited(),
    CLICKHOUSE_URL: inject('clickhouseUrl'),
    CLICKHOUSE_DATABASE: `test_migrations_command_${name}`,
    ...WRITER_ACCOUNT,
  };
  const config = { ...env, ...ADMINISTRATOR };
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 });
  const inServer = createClickHouse(
    { ...config, CLICKHOUSE_DATABASE: 'default' },
    { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 },
  );
  onTestFinished(async () => {
    await inServer.command({ query: `DROP DATABASE IF EXISTS ${env.CLICKHOUSE_DATABASE} SYNC` });
    await Promise.all([client.close(), inServer.close()]);
  });
  const run = (...args: string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      execFile(process.execPath, [programFile('sluice'), 'migrations', ...args], { env }, (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      });
    });
  return { run, env, command: (query: string) => client.command({ query }) };
}

test('it shows what is missing, applies it, and does nothing the second time', async () => {
  const { run } = newDatabase('missing');
  const all = await readMigrations();
  const before = await run('status');
  expect(before.code).toBe(1);
  expect(before.stdout).toMatch(/^0001-events\.sql +missing$/m);
  expect(before.stdout).toContain(`missing: ${all.length} migrations\n`);
  const applied = await run('apply', '--wait');
  expect(applied).toMatchObject({ code: 0, stderr: '' });
  expect(applied.stdout).toContain(`applied ${all.length} migrations\n`);
  expect(applied.stdout).toMatch(/^0001-events\.sql +applied \d{4}-\d\d-\d\dT[\d:]+Z$/m);
  expect(applied.stdout).toMatch(
    /no migration is missing\n(in the background: .*\n)*nothing is left to do in the background\n$/,
  );
  expect((await run('apply')).stdout).toContain('no migration was missing\n');
});

test('it shows what ClickHouse does in the background, waits for it, and says what fails', async () => {
  const { run, env, command } = newDatabase('background');
  await run('apply', '--wait');
  await command("INSERT INTO dead_letters (id, kind) VALUES ('a', 'events')");
  await command('SYSTEM STOP MERGES dead_letters');
  await command("ALTER TABLE dead_letters UPDATE format = 'x' WHERE 1 SETTINGS mutations_sync = 0");
  const { code, stdout } = await run('status');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^in the background: dead_letters: .*UPDATE format = 'x' WHERE 1.*: 1 part to do, for \d+ s$/m,
  );
  const waiting = spawn(process.execPath, [programFile('sluice'), 'migrations', 'status', '--wait'], { env });
  let printed = '';
  waiting.stdout.setEncoding('utf8').on('data', (text) => (printed += text));
  const ended = once(waiting, 'exit');
  await eventually(() => printed).toContain('1 part to do');
  await command('SYSTEM START MERGES dead_letters');
  expect(await ended).toEqual([0, null]);
  expect(printed).toMatch(/nothing is left to do in the background\n$/);

  await command(
    "ALTER TABLE dead_letters UPDATE reason = toString(throwIf(1, 'no space')) WHERE 1 SETTINGS mutations_sync = 0",
  );
  await eventually(async () => (await run('status')).code).toBe(1);
  expect((await run('status')).stdout).toMatch(/^in the background: .*it fails and is repeated: .*no space/m);
});

test('it says that a database belongs to a newer version, and changes nothing when this one cannot use it', async () => {
  const { run, command } = newDatabase('newer');
  await run('apply');
  await command("INSERT INTO schema_migrations (number, name, checksum) VALUES (9998, '9998-added.sql', 'x')");
  const newer = await run('status');
  expect(newer.code).toBe(0);
  expect(newer.stdout).toMatch(/^9998-added\.sql +of a newer version$/m);
  await command("INSERT INTO schema_migrations (number, name, checksum) VALUES (9999, '9999-b-no-downgrade.sql', 'x')");
  const refused = await run('apply');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^Nothing is done: .*9999-b-no-downgrade\.sql/);
});

test('it refuses wrong arguments', async () => {
  const { run } = newDatabase('arguments');
  for (const args of [[], ['remove'], ['status', 'x'], ['apply', '--all']]) {
    const { code, stderr } = await run(...args);
    expect(code, args.join(' ')).toBe(2);
    expect(stderr).toContain('Use status or apply');
  }
});

test('of several servers it shows and applies those of each, or of the one that is named', async () => {
  await using servers = await startServers(
    { clickhouseUrl: inject('clickhouseUrl'), kafkaBrokers: inject('kafkaBrokers') },
    ['a1', 'a2'],
  );
  await servers.writeFile({ a1: {}, a2: {}, a3: { database: `${servers.of.a1.database}_new` } });
  onTestFinished(async () => {
    await using client = createClickHouse(
      { CLICKHOUSE_URL: inject('clickhouseUrl'), CLICKHOUSE_DATABASE: 'default', ...ADMINISTRATOR },
      { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 },
    );
    await client.command({ query: `DROP DATABASE IF EXISTS ${servers.of.a1.database}_new SYNC` });
  });
  const all = await servers.sluice(['migrations', 'status']);
  expect(all.code).toBe(1);
  expect(all.stdout).toMatch(
    /^server a1\n.*no migration is missing\n.*^server a2\n.*^server a3\n.*missing: \d+ migrations/ms,
  );
  const one = await servers.sluice(['migrations', 'status', '--server', 'a2']);
  expect([one.code, one.stdout]).toEqual([0, expect.not.stringMatching(/^server /m)]);
  expect(await servers.sluice(['migrations', 'apply'])).toMatchObject({ code: 0 });
  expect(await servers.sluice(['migrations', 'status', '--server', 'a3'])).toMatchObject({ code: 0 });
});

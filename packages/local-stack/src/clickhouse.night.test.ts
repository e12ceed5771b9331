import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ClickHouseLogLevel, createClient } from '@clickhouse/client';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { type LocalClickHouse, startClickHouse } from './clickhouse.ts';
import { isAlive, orphan } from './testing/orphan.ts';
import { makeTempDir } from './testing/temp-dir.ts';

interface Login {
  readonly url: string;
  readonly user: string;
  readonly password: string;
}

/** The rows of a SELECT, or nothing for any other statement. */
async function run(server: Login, sql: string, sessionId?: string): Promise<unknown[]> {
  const session = sessionId === undefined ? {} : { session_id: sessionId };
  const { url, user: username, password } = server;
  const log = { level: ClickHouseLogLevel.OFF };
  const clickhouse_settings = { wait_end_of_query: 1 } as const;
  const client = createClient({ url, username, password, log, ...session, clickhouse_settings });
  try {
    if (sql.startsWith('SELECT')) return await (await client.query({ query: sql, format: 'JSONEachRow' })).json();
    await client.command({ query: sql });
    return [];
  } finally {
    await client.close();
  }
}

async function withServer(use: (server: LocalClickHouse) => Promise<void>): Promise<void> {
  await using dir = await makeTempDir();
  const server = await startClickHouse({ dataDir: dir.path });
  try {
    await use(server);
  } finally {
    await server.kill9();
  }
}

test('a server keeps its rows through a kill, a restart and a new start', async () => {
  await using dir = await makeTempDir();
  const dataDir = join(dir.path, 'a folder with a space and an é');
  const server = await startClickHouse({ dataDir });
  await run(server, 'CREATE DATABASE sluice');
  await run(server, 'CREATE TABLE sluice.kept (n UInt64) ENGINE = MergeTree ORDER BY n');
  await run(server, 'INSERT INTO sluice.kept VALUES (1)');
  await server.kill9();
  expect(server.pid).toBeUndefined();
  await server.restart();
  await run(server, 'INSERT INTO sluice.kept VALUES (2)');
  await server.stop();

  const again = await startClickHouse({ dataDir });
  expect(await run(again, 'SELECT n FROM sluice.kept ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }]);
  await expect(startClickHouse({ dataDir })).rejects.toMatchObject({
    code: 'DATA_FOLDER_IN_USE',
    message: expect.stringContaining(`pid ${again.pid}`),
  });
  await again.stop();
  expect((await again.exited()).code).toBeNull();
  expect((await readdir(dataDir)).filter((name) => name.startsWith('.run-'))).toEqual([]);
});

test('an orderly stop ends the process with exit code 0', async () => {
  await using dir = await makeTempDir();
  const server = await startClickHouse({ dataDir: dir.path });
  const exited = server.exited();
  await server.stop();
  expect(await exited).toEqual({ code: 0, signal: null });
});

test('with a password, nobody logs in without it', async () => {
  await using dir = await makeTempDir();
  const password = `it's <"&> long`;
  const server = await startClickHouse({ dataDir: dir.path, password });
  expect(await run(server, 'SELECT currentUser() AS user')).toEqual([{ user: 'sluice' }]);
  await expect(run({ ...server, password: 'wrong' }, 'SELECT 1')).rejects.toMatchObject({ code: '516' });
  await expect(run({ ...server, password: '' }, 'SELECT 1')).rejects.toMatchObject({ code: '516' });
  // The user of the engine itself exists, but the engine has its only session.
  await expect(run({ ...server, user: 'default', password: '' }, 'SELECT 1')).rejects.toMatchObject({ code: '700' });
  await server.kill9();
});

test('the error about a taken port names the port', async () => {
  await withServer(async ({ httpPort }) => {
    await using dir = await makeTempDir();
    const message = expect.stringContaining(String(httpPort));
    await expect(startClickHouse({ dataDir: dir.path, httpPort })).rejects.toMatchObject({
      code: 'PORT_TAKEN',
      message,
    });
  });
});

test('a server ends when its parent is killed', async () => {
  await using dir = await makeTempDir();
  const [pid = 0] = await orphan('clickhouse', dir.path);
  await eventually(() => isAlive(pid)).toBe(false);
});

test('the engine has what the writer needs: temporary tables of a session, deletes, KILL QUERY', async () => {
  await withServer(async (server) => {
    await run(server, 'CREATE TEMPORARY TABLE staging (n UInt64) ENGINE = Memory', 'writer');
    await run(server, 'INSERT INTO staging SELECT number FROM numbers(10)', 'writer');
    expect(await run(server, 'SELECT count() AS rows FROM staging', 'writer')).toEqual([{ rows: 10 }]);
    await expect(run(server, 'SELECT 1 FROM staging', 'another session')).rejects.toMatchObject({
      type: 'UNKNOWN_TABLE',
    });
    await expect(run(server, 'SELECT 1 FROM staging')).rejects.toMatchObject({ type: 'UNKNOWN_TABLE' });

    await run(server, 'CREATE DATABASE sluice');
    await run(server, 'CREATE TABLE sluice.rows (n UInt64) ENGINE = MergeTree ORDER BY n');
    await run(server, 'INSERT INTO sluice.rows SELECT n FROM staging', 'writer');
    await run(server, 'DELETE FROM sluice.rows WHERE n < 4');
    expect(await run(server, 'SELECT count() AS rows FROM sluice.rows')).toEqual([{ rows: 6 }]);

    const marked = 'SELECT /* endless */ max(number) FROM system.numbers';
    const endless = run(server, marked).then(() => 'ended by itself', String);
    const running = "FROM system.processes WHERE query LIKE 'SELECT /* endless%'";
    await eventually(() => run(server, `SELECT 1 AS found ${running}`)).toHaveLength(1);
    await run(server, `KILL QUERY WHERE query LIKE 'SELECT /* endless%' SYNC`);
    expect(await run(server, `SELECT 1 AS found ${running}`)).toEqual([]);
    expect(await endless).toContain('cancelled');
  });
});

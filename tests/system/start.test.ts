import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { commandLines } from '../kit/command-lines.ts';
import { commandsOf, DEV_KEY, paste, start, startEnvironment, startReady, usersBySql } from '../kit/start-command.ts';

/** What a start printed before it was ready, with `N` for each number of seconds, but for what a busy machine adds. */
function linesUntilReady(output: string): string[] {
  const lines = output.slice(0, output.indexOf('Sluice is ready.')).trim().split('\n');
  return lines
    .filter((line) => !line.startsWith('still waiting for '))
    .map((line) => line.replace(/\(\d+\.\d s\)/, '(N s)'))
    .toSorted();
}

async function readLogs(logDir: string): Promise<string[]> {
  return await Promise.all((await readdir(logDir)).map((name) => readFile(join(logDir, name), 'utf8')));
}

/** Asks for the users of all events by Trench's interface. */
async function usersByTrench(port: string | undefined): Promise<unknown> {
  const response = await postToTrench(port, '/queries', '{"queries":["SELECT userId FROM events"]}');
  return ((await response.json()) as { results: unknown }).results;
}

async function createTrenchWorkspace(port: string | undefined): Promise<number> {
  return (await postToTrench(port, '/workspaces', '{"name":"Acme"}')).status;
}

async function postToTrench(port: string | undefined, path: string, body: string): Promise<Response> {
  const headers = { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/json' };
  return await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body });
}

test('npm start brings up a system that works as its welcome says, and leaves nothing behind', async () => {
  await using dir = await makeTempDir();
  const { env, usedPorts } = await startEnvironment(dir.path);
  const { QUERY_PORT, TRENCH_PORT } = env;

  const first = await startReady(env);
  const logDir = join(env.SLUICE_DATA_DIR, 'logs');
  const names = ['ClickHouse', 'Kafka', 'ingest-api', 'query-api', 'trench-api', 'writer'];
  expect(linesUntilReady(first.output())).toEqual(
    [
      `Starting Sluice. Its data is in ${env.SLUICE_DATA_DIR}, the logs in ${logDir}`,
      ...names.map((name) => `${name} is ready (N s)`),
    ].toSorted(),
  );
  for (const name of ['ingest-api', 'query-api', 'trench-api', 'writer']) {
    expect(await readFile(join(logDir, `${name}.log`), 'utf8')).toMatch(/^\{"level":"info",.*\}\n/);
  }
  const docs = first.output().match(/http:\/\/\S+\/docs/g) ?? [];
  expect(docs).toHaveLength(2);
  for (const address of docs) {
    expect((await fetch(address)).status).toBe(200);
    expect(await (await fetch(new URL('/', address))).json()).toMatchObject({
      docs: '/docs',
      openapi: '/openapi.json',
    });
  }
  const [submit, see] = commandsOf(first);
  expect(await paste(submit)).toMatchObject({ status: 'accepted' });
  await eventually(() => paste(see)).toMatchObject({ total: 1, results: [{ userId: 'jane' }] });
  expect(await usersBySql(QUERY_PORT)).toEqual({ user_id: 'jane' });
  expect(first.output()).toContain(`trench-api  http://127.0.0.1:${TRENCH_PORT}\n`);
  expect(await usersByTrench(TRENCH_PORT)).toEqual([[{ userId: 'jane' }]]);
  expect(await createTrenchWorkspace(TRENCH_PORT)).toBe(201);

  const password = (await readFile(join(env.SLUICE_DATA_DIR, 'clickhouse-password'), 'utf8')).trim();
  const logged = await readLogs(logDir);
  const shown = [first.output(), ...logged, ...(await commandLines())].join('\n');
  expect(shown).not.toContain(password);
  expect([...logged, ...(await commandLines())].join('\n')).not.toContain(DEV_KEY);

  const second = start(env);
  expect(await second.exited).toEqual([1, null]);
  expect(second.output()).toMatch(/^Another run \(pid \d+\) uses the data folder .*\n$/);

  first.process.kill('SIGINT');
  expect(await first.exited).toEqual([0, null]);
  expect(await usedPorts()).toEqual([]);
});

test('npm start names every variable that it cannot use, and starts nothing', async () => {
  const { PATH } = process.env;
  const run = start({ PATH, INGEST_PORT: 'http', SLUICE_DEV_KEY: 'short' });
  expect(await run.exited).toEqual([1, null]);
  expect(run.output()).toBe(
    'INGEST_PORT must be a port number from 1 to 65535.\nSLUICE_DEV_KEY must be 16 to 200 visible ASCII characters.\n',
  );
});

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePorts, isPortFree } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, onTestFinished, test } from 'vitest';
import { commandLines } from '../kit/command-lines.ts';

const RUN = join(import.meta.dirname, '..', '..', 'scripts', 'run.mjs');
const READY_TIMEOUT_MS = 60_000;
const DEV_KEY = "a-key-with-'quotes'-$and\\more";

interface Run {
  readonly process: ChildProcess;
  /** Everything printed so far. */
  readonly output: () => string;
  readonly exited: Promise<unknown[]>;
}

function start(env: NodeJS.ProcessEnv, args: readonly string[] = []): Run {
  const child = spawn('node', [RUN, 'start', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let text = '';
  const collect = (chunk: string) => {
    text += chunk;
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  return { process: child, output: () => text, exited: once(child, 'exit') };
}

/** Runs a command of operators, and returns what it printed. */
async function sluice(env: NodeJS.ProcessEnv, ...args: string[]): Promise<string> {
  return (await promisify(execFile)('node', [RUN, 'sluice', ...args], { env })).stdout;
}

async function startReady(env: NodeJS.ProcessEnv): Promise<Run> {
  const run = start(env);
  await eventually(run.output, { timeout: READY_TIMEOUT_MS }).toContain('Ctrl-C stops everything');
  return run;
}

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

async function paste(command: string | undefined): Promise<unknown> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `${command} --silent`]);
  return JSON.parse(stdout);
}

/** Asks for the users of all events by SQL. */
async function usersBySql(port: string | undefined): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/queries`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/json' },
    body: '{"sql":"SELECT user_id FROM events","format":"ndjson"}',
  });
  return await response.json();
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

test('npm start brings up a system that works as its welcome says, keeps its data, restores a backup, and leaves nothing behind', async () => {
  await using dir = await makeTempDir();
  const { PATH, HOME } = process.env;
  const ports = await findFreePorts(6);
  const [INGEST_PORT, QUERY_PORT, WRITER_PORT, KAFKA_PORT, CLICKHOUSE_PORT, TRENCH_PORT] = ports.map(String);
  const env = {
    ...{ PATH, HOME },
    ...{ INGEST_PORT, QUERY_PORT, WRITER_PORT, KAFKA_PORT, CLICKHOUSE_PORT, TRENCH_PORT },
    SLUICE_DATA_DIR: join(dir.path, 'data'),
    SLUICE_DEV_KEY: DEV_KEY,
  };
  const usedPorts = async () => (await Promise.all(ports.map((port) => isPortFree(port)))).filter((free) => !free);

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
    expect(await readFile(join(logDir, `${name}.log`), 'utf8')).toMatch(/^\{"level":30,.*\}\n/);
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
  const [submit, see] = first.output().match(/^ {2}curl .*$/gm) ?? [];
  expect(await paste(submit)).toMatchObject({ status: 'accepted' });
  await eventually(() => paste(see)).toMatchObject({ total: 1, results: [{ userId: 'jane' }] });
  expect(await usersBySql(QUERY_PORT)).toEqual({ user_id: 'jane' });
  expect(first.output()).toContain(`trench-api  http://127.0.0.1:${TRENCH_PORT}\n`);
  expect(await usersByTrench(TRENCH_PORT)).toEqual([[{ userId: 'jane' }]]);
  expect(await createTrenchWorkspace(TRENCH_PORT)).toBe(201);

  const backup = join(env.SLUICE_DATA_DIR, 'backups', 'one');
  expect(await sluice(env, 'backup', '--to', backup)).toContain('The backup is complete');
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

  await rm(join(env.SLUICE_DATA_DIR, 'clickhouse'), { recursive: true });
  const engines = start(env, ['--engines']);
  await eventually(engines.output, { timeout: READY_TIMEOUT_MS }).toContain('Kafka and ClickHouse are ready');
  expect(await sluice(env, 'restore', '--from', backup, '--yes')).toContain('is restored');
  engines.process.kill('SIGINT');
  expect(await engines.exited).toEqual([0, null]);

  const third = await startReady(env);
  expect(await paste(see)).toMatchObject({ total: 1 });
  expect(await usersBySql(QUERY_PORT)).toEqual({ user_id: 'jane' });
  process.kill(Number(await readFile(join(env.SLUICE_DATA_DIR, 'lock'), 'utf8')), 'SIGKILL');
  await third.exited;
  await eventually(usedPorts).toEqual([]);
});

test('npm start names every variable that it cannot use, and starts nothing', async () => {
  const { PATH } = process.env;
  const run = start({ PATH, INGEST_PORT: 'http', SLUICE_DEV_KEY: 'short' });
  expect(await run.exited).toEqual([1, null]);
  expect(run.output()).toBe(
    'INGEST_PORT must be a port number from 1 to 65535.\nSLUICE_DEV_KEY must be 16 to 200 visible ASCII characters.\n',
  );
});

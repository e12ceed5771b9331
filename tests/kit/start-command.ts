import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePorts, isPortFree } from '@sluice/local-stack/ports';
import { eventually } from '@sluice/shared/testing/eventually';
import { onTestFinished } from 'vitest';

// `npm start` as a user runs it.

const RUN = join(import.meta.dirname, '..', '..', 'scripts', 'run.mjs');
const READY_TIMEOUT_MS = 60_000;
export const DEV_KEY = "a-key-with-'quotes'-$and\\more";

export interface Run {
  readonly process: ChildProcess;
  /** Everything printed so far. */
  readonly output: () => string;
  readonly exited: Promise<unknown[]>;
}

/** The environment of a start on free ports, with its data in a folder. */
export async function startEnvironment(folder: string) {
  const { PATH, HOME } = process.env;
  const ports = await findFreePorts(6);
  const [INGEST_PORT, QUERY_PORT, WRITER_PORT, KAFKA_PORT, CLICKHOUSE_PORT, TRENCH_PORT] = ports.map(String);
  const env = {
    ...{ PATH, HOME },
    ...{ INGEST_PORT, QUERY_PORT, WRITER_PORT, KAFKA_PORT, CLICKHOUSE_PORT, TRENCH_PORT },
    SLUICE_DATA_DIR: join(folder, 'data'),
    SLUICE_DEV_KEY: DEV_KEY,
  };
  const usedPorts = async () => (await Promise.all(ports.map((port) => isPortFree(port)))).filter((free) => !free);
  return { env, usedPorts };
}

export function start(env: NodeJS.ProcessEnv, args: readonly string[] = []): Run {
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

/** Starts, and waits until it has printed a text. */
export async function startUntil(printed: string, env: NodeJS.ProcessEnv, args?: readonly string[]): Promise<Run> {
  const run = start(env, args);
  await eventually(run.output, { timeout: READY_TIMEOUT_MS }).toContain(printed);
  return run;
}

/** Starts everything, and waits until it is ready. */
export async function startReady(env: NodeJS.ProcessEnv): Promise<Run> {
  return await startUntil('Ctrl-C stops everything', env);
}

/** The commands to submit an event and to see it, of what a start has printed. */
export function commandsOf({ output }: Run): readonly [submit?: string, see?: string] {
  const [submit, see] = output().match(/^ {2}curl .*$/gm) ?? [];
  return [submit, see] as readonly [string?, string?];
}

/** Runs a command that was printed, and returns its response. */
export async function paste(command: string | undefined): Promise<unknown> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `${command} --silent`]);
  return JSON.parse(stdout);
}

/** Runs a command of operators, and returns what it printed. */
export async function sluice(env: NodeJS.ProcessEnv, ...args: string[]): Promise<string> {
  return (await promisify(execFile)('node', [RUN, 'sluice', ...args], { env })).stdout;
}

/** Asks for the users of all events by SQL. */
export async function usersBySql(port: string | undefined): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/queries`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEV_KEY}`, 'content-type': 'application/json' },
    body: '{"sql":"SELECT user_id FROM events","format":"ndjson"}',
  });
  return await response.json();
}

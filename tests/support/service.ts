import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freeze } from './freeze.ts';

export type ServiceName = 'ingest-api' | 'writer' | 'query-api';

/** How long a service may take to become ready, in milliseconds. */
const READY_TIMEOUT_MS = 60_000;

/** A service as a process of its own, as an operator runs it. It ends with this process. */
export interface Service {
  readonly url: string;
  readonly pid: number;
  /** What it has logged so far. */
  log(): string;
  /** Waits until `/readyz` answers 200. */
  ready(): Promise<void>;
  /** SIGTERM; gives the exit code. */
  stop(): Promise<number | null>;
  /** SIGKILL. */
  kill9(): Promise<void>;
  /** SIGSTOP; SIGCONT comes with {@link Service.thaw}, or when this process ends. */
  freeze(): void;
  thaw(): void;
  /** Resolves with the exit code once the process has ended. */
  exited(): Promise<number | null>;
  /** Starts the same again, on the same address, once it has ended. */
  again(): Service;
}

/** Starts `services/<name>/src/main.ts` with this environment and nothing else of ours. */
export function startService(name: ServiceName, port: number, env: Readonly<Record<string, string>>): Service {
  const main = fileURLToPath(new URL(`../../services/${name}/src/main.ts`, import.meta.url));
  const child: ChildProcess = spawn(process.execPath, [main], {
    env: { PATH: process.env['PATH'] ?? '', HOST: '127.0.0.1', PORT: String(port), EXIT_ON_STDIN_END: 'true', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${name} cannot be started`);
  let thaw: (() => void) | undefined;
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text) => chunks.push(text));
  child.stdin?.on('error', () => undefined);
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  const url = `http://127.0.0.1:${port}`;
  const log = () => chunks.join('');

  async function end(signal: NodeJS.Signals): Promise<number | null> {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return await exit;
  }

  return {
    url,
    pid,
    log,
    async ready() {
      await until(`${name} to be ready`, READY_TIMEOUT_MS, async () => {
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${name} has ended:\n${log()}`);
        const response = await fetch(`${url}/readyz`).catch(() => undefined);
        await response?.arrayBuffer();
        return response?.ok;
      }).catch((error: Error) => {
        throw new Error(`${error.message}\n${log().slice(-4_000)}`);
      });
    },
    stop: () => end('SIGTERM'),
    async kill9() {
      await end('SIGKILL');
    },
    freeze() {
      thaw = freeze(pid);
    },
    thaw: () => thaw?.(),
    exited: () => exit,
    again: () => startService(name, port, env),
  };
}

/** Asks again and again, with short pauses, until the answer is truthy, and gives it. */
export async function until<Answer>(
  what: string,
  timeoutMs: number,
  ask: () => Promise<Answer>,
): Promise<NonNullable<Answer>> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what} in vain`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile, THIS_CHECKOUT } from '@sluice/shared/testing/program-file';
import { explain, TooLate, until } from '@sluice/shared/testing/until';
import { freeze } from './freeze.ts';

export const SERVICE_NAMES = ['ingest-api', 'writer', 'query-api'] as const;

export type ServiceName = (typeof SERVICE_NAMES)[number];

/** Every service that can be started; trench-api stands before the others, and the pipeline needs it not. */
export type AnyServiceName = ServiceName | 'trench-api';

/** A service as a process of its own, as an operator runs it. It ends when this process ends. */
export interface Service {
  readonly url: string;
  readonly pid: number;
  /** What it has logged so far. */
  log(): string;
  /** Waits until `/readyz` answers 200. */
  ready(): Promise<void>;
  /** Sends SIGTERM, and resolves with the exit code. @throws {TooLate} when it has not ended after a minute */
  stop(): Promise<number | null>;
  /** Sends SIGKILL, and resolves when the process has ended. */
  kill9(): Promise<void>;
  /** Sends SIGSTOP. {@link Service.thaw} sends SIGCONT, and so does the end of this process. */
  freeze(): void;
  thaw(): void;
  /** Resolves with the exit code once the process has ended. */
  exited(): Promise<number | null>;
  /** Waits until the process ends by itself, and resolves with the exit code. @throws {TooLate} after a minute */
  endsItself(): Promise<number | null>;
  /** Starts the same again, on the same address, once it has ended. @param checkout default: the one it ran from */
  again(checkout?: string): Service;
}

/** Returns how a service with this environment is reached. */
export function schemeOf(env: Readonly<Record<string, string>>): 'http' | 'https' {
  return env['TLS_CERT_FILE'] ? 'https' : 'http';
}

/**
 * Starts a service with this environment; of the test's own it gets only what it cannot do without.
 *
 * @param checkout the folder of the repository that it runs from, such as one of another version
 */
export function startService(
  name: AnyServiceName,
  port: number,
  env: Readonly<Record<string, string>>,
  checkout = THIS_CHECKOUT,
): Service {
  const child: ChildProcess = spawn(process.execPath, [programFile(name, { checkout, env })], {
    env: { ...inherited(), HOST: '127.0.0.1', PORT: String(port), EXIT_ON_STDIN_END: 'true', ...env },
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
  const url = `${schemeOf(env)}://127.0.0.1:${port}`;
  const log = () => chunks.join('');

  function send(signal: NodeJS.Signals): void {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  }

  async function endsItself(): Promise<number | null> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new TooLate(`${name} is still running:\n${log().slice(-4_000)}`)), ENDS_MS);
    return await Promise.race([exit, late]).finally(() => clearTimeout(timer));
  }

  return {
    url,
    pid,
    log,
    async ready() {
      await until(`${name} to be ready`, async () => {
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${name} has ended`);
        const response = await fetch(`${url}/readyz`).catch(() => undefined);
        await response?.arrayBuffer();
        return response?.ok;
      }).catch(explain(() => log().slice(-4_000)));
    },
    async stop() {
      send('SIGTERM');
      return await endsItself();
    },
    async kill9() {
      send('SIGKILL');
      await exit;
    },
    freeze() {
      thaw = freeze(pid);
    },
    thaw: () => thaw?.(),
    exited: () => exit,
    endsItself,
    again: (from = checkout) => startService(name, port, env, from),
  };
}

/** How long a service may take to end, in milliseconds. It gives itself 20 seconds: this only ends a test that hangs. */
const ENDS_MS = 60_000;

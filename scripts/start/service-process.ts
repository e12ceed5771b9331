import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EngineProcess, superviseChild } from '@sluice/local-stack/engine-process';
import type { ProcessSpec } from './supervisor.ts';

const POLL_INTERVAL_MS = 100;
const REPORT_INTERVAL_MS = 10_000;
/** Longer than the service's own SHUTDOWN_TIMEOUT_MS. */
const STOP_TIMEOUT_MS = 25_000;

export interface ServiceSpec {
  readonly name: string;
  /** Its main.ts. */
  readonly mainFile: string;
  readonly port: number;
  /** Added to the environment, with PORT, HOST and EXIT_ON_STDIN_END. */
  readonly env: Readonly<Record<string, string>>;
}

export interface ServiceContext {
  readonly baseEnv: NodeJS.ProcessEnv;
  /** Gets each line of the service's output. */
  readonly onLine: (service: string, line: string) => void;
  readonly report: (line: string) => void;
}

/**
 * The services listen on this machine alone, and serve a workspace without a key. A web page whose name resolves to
 * 127.0.0.1 must not read it.
 */
const NAMES_OF_THIS_MACHINE = 'localhost';

/** A service for the supervisor. It is ready when its `/readyz` answers 200. */
export function serviceProcess(spec: ServiceSpec, context: ServiceContext): ProcessSpec {
  return {
    name: spec.name,
    async start(signal) {
      const service = await spawnService(spec, context);
      try {
        await waitUntilReady(spec, service, context.report, signal);
        return service;
      } catch (error) {
        await service.stop();
        throw error;
      }
    },
  };
}

async function spawnService(spec: ServiceSpec, { baseEnv, onLine }: ServiceContext): Promise<EngineProcess> {
  const names = baseEnv['ALLOWED_HOSTS'] || NAMES_OF_THIS_MACHINE;
  const own = { ALLOWED_HOSTS: names, HOST: '127.0.0.1', PORT: String(spec.port), EXIT_ON_STDIN_END: 'true' };
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', spec.mainFile], {
    env: { LOG_LEVEL: 'info', ...baseEnv, ...spec.env, ...own },
    // The end of its standard input tells the service that this process has ended.
    stdio: ['pipe', 'pipe', 'pipe'],
    // In a process group of its own, so that Ctrl-C does not stop it out of order.
    detached: true,
  });
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on('line', (line) => onLine(spec.name, line));
  }
  await once(child, 'spawn');
  return superviseChild(child, STOP_TIMEOUT_MS);
}

async function waitUntilReady(
  { name, port }: ServiceSpec,
  service: EngineProcess,
  report: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  const exited = service.exited.then((status) => {
    gone.abort();
    return status;
  });
  const ended = AbortSignal.any([signal, gone.signal]);
  let reportAt = performance.now() + REPORT_INTERVAL_MS;
  while (!ended.aborted) {
    const missing = await readMissing(port, ended);
    if (missing === undefined && !ended.aborted) return;
    if (performance.now() > reportAt) {
      report(`still waiting for ${name}: ${missing}`);
      reportAt = performance.now() + REPORT_INTERVAL_MS;
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal: ended }).catch(() => {});
  }
  signal.throwIfAborted();
  const { code, signal: killer } = await exited;
  throw new Error(killer ? `it was ended by ${killer}` : `it ended with exit code ${code}`);
}

/** What a service lacks, from the body of its `/readyz`. */
function missingOf(body: string): string {
  try {
    return (JSON.parse(body) as { missing: readonly string[] }).missing.join(', ');
  } catch {
    return body;
  }
}

/** Why the service is not ready; `undefined` when it is. */
async function readMissing(port: number, signal: AbortSignal): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal });
    const body = await response.text();
    return response.ok ? undefined : missingOf(body);
  } catch {
    return 'it does not listen yet';
  }
}

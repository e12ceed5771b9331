import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type EngineProcess, superviseChild } from '@sluice/local-stack/engine-process';
import type { ProcessSpec } from './supervisor.ts';

const POLL_INTERVAL_MS = 100;
const PATIENCE_MS = 10_000;
/** More than a service allows itself. */
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

/** A service as something to supervise: ready when its `/readyz` answers 200. */
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
  const own = { HOST: '127.0.0.1', PORT: String(spec.port), EXIT_ON_STDIN_END: 'true' };
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', spec.mainFile], {
    env: { LOG_LEVEL: 'info', ...baseEnv, ...spec.env, ...own },
    // Its end tells the service that this process is gone.
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
  const giveUp = AbortSignal.any([signal, gone.signal]);
  let patienceEndsAt = performance.now() + PATIENCE_MS;
  while (!giveUp.aborted) {
    const missing = await askReadiness(port, giveUp);
    if (missing === undefined && !giveUp.aborted) return;
    if (performance.now() > patienceEndsAt) {
      report(`still waiting for ${name}: ${missing}`);
      patienceEndsAt = performance.now() + PATIENCE_MS;
    }
    await sleep(POLL_INTERVAL_MS, undefined, { signal: giveUp }).catch(() => {});
  }
  signal.throwIfAborted();
  const { code, signal: killer } = await exited;
  throw new Error(killer ? `it was ended by ${killer}` : `it ended with exit code ${code}`);
}

/** What keeps the service from being ready, or undefined when it is. */
async function askReadiness(port: number, signal: AbortSignal): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal });
    const body = await response.text();
    return response.ok ? undefined : body;
  } catch {
    return 'it does not listen yet';
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineProcess } from '@sluice/local-stack/engine-process';

/** A process to supervise. */
export interface ProcessSpec {
  readonly name: string;
  /** Resolves when the process is ready. Before it rejects, also when `signal` aborts, it ends what it has started. */
  start(signal: AbortSignal): Promise<EngineProcess>;
}

export interface SupervisorOptions {
  /** Stages start one after the other and stop in reverse; the processes of a stage start and stop together. */
  readonly stages: readonly (readonly ProcessSpec[])[];
  /** Called with a line for the person who watches. */
  readonly report: (line: string) => void;
  /** The delay before the first restart; it doubles with each one. Default 500. */
  readonly restartDelayMsMin?: number;
  /** Default 30,000. */
  readonly restartDelayMsMax?: number;
  /** When a process has run this long, its delay is the minimum again. Default 60,000. */
  readonly stableAfterMs?: number;
  /** How often a process may fail to start before `start` gives up. Default 3. */
  readonly firstStartAttemptsMax?: number;
}

export interface Supervisor {
  /** Resolves when every process was ready once. When one cannot start, it stops all and rejects. */
  start(): Promise<void>;
  /** Stops everything in reverse order, also while starting. */
  stop(): Promise<void>;
  /** Sends SIGKILL to all, without waiting. */
  killNow(): void;
}

interface Supervised {
  readonly ready: Promise<void>;
  /** Stops the process and its supervision. */
  stop(): Promise<void>;
  killNow(): void;
}

/** Starts processes in order, and restarts each one that ends. The others keep running. */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const started: Supervised[][] = [];
  let stopped: Promise<void> | undefined;

  const stopAll = async (): Promise<void> => {
    for (const stage of started.toReversed()) await Promise.all(stage.map((process) => process.stop()));
  };
  const stop = (): Promise<void> => {
    stopped ??= stopAll();
    return stopped;
  };
  return {
    async start() {
      for (const stage of options.stages) {
        if (stopped) return;
        const processes = stage.map((spec) => supervise(spec, options));
        started.push(processes);
        try {
          await Promise.all(processes.map((process) => process.ready));
        } catch (error) {
          if (stopped) return;
          await stop();
          throw error;
        }
      }
    },
    stop,
    killNow: () => {
      for (const process of started.flat()) process.killNow();
    },
  };
}

function supervise(spec: ProcessSpec, options: SupervisorOptions): Supervised {
  const { restartDelayMsMin = 500, restartDelayMsMax = 30_000, stableAfterMs = 60_000 } = options;
  const { report, firstStartAttemptsMax = 3 } = options;
  const stopping = new AbortController();
  const ready = Promise.withResolvers<void>();
  let current: EngineProcess | undefined;
  let wasReady = false;
  let delayMs = restartDelayMsMin;

  /** Runs the process once, and returns how it ended. */
  async function run(): Promise<string> {
    const startedAt = performance.now();
    current = await spec.start(stopping.signal);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    report(`${spec.name} is ready${wasReady ? ' again' : ''} (${seconds} s)`);
    wasReady = true;
    ready.resolve();
    const { code, signal } = await current.exited;
    current = undefined;
    if (performance.now() - startedAt >= stableAfterMs) delayMs = restartDelayMsMin;
    return signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
  }

  async function keepAlive(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; ) {
      let end: string;
      try {
        end = await run();
      } catch (error) {
        if (stopping.signal.aborted) return;
        failures += 1;
        end = `did not start: ${(error as Error).message}`;
        if (!wasReady && failures >= firstStartAttemptsMax) throw new Error(`${spec.name} ${end}`, { cause: error });
      }
      if (stopping.signal.aborted) return;
      report(`${spec.name} ${end}; starting it again in ${delayMs / 1000} s`);
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => {});
      delayMs = Math.min(delayMs * 2, restartDelayMsMax);
    }
  }

  const done = keepAlive().catch(ready.reject);
  return {
    ready: ready.promise,
    async stop() {
      stopping.abort();
      await current?.stop();
      await done;
      ready.reject(new Error(`${spec.name} was stopped`));
    },
    killNow: () => void current?.kill9(),
  };
}

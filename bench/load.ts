import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface LoadSpec {
  readonly url: string;
  readonly key: string;
  readonly eventsPerRequest: number;
  readonly connections: number;
  readonly durationMs: number;
  readonly gzip?: boolean;
  /** Sends batches of track calls, as `@segment/analytics-node` does, instead of submissions. */
  readonly calls?: boolean;
  /** Default: as many as the server responds to. */
  readonly requestsPerSecond?: number;
  /** The number of the first event; the others follow it. */
  readonly firstEvent: number;
}

export interface LoadResult {
  /** How many had the response 202, or 200 to calls. */
  readonly requests: number;
  readonly events: number;
  /** From the first request to the last response. */
  readonly seconds: number;
  readonly latencyMs: { readonly median: number; readonly p99: number };
  /** The sum of the numbers of the events, in decimal; 0 for calls, whose uuids have no numbers. */
  readonly numbersSum: string;
  /** The first other response. With one, the figures are void. */
  readonly fault: string | undefined;
}

/** A process that sends submissions. It ends with this one. */
export interface Loader {
  readonly pid: number;
  run(spec: LoadSpec): Promise<LoadResult>;
  stop(): void;
}

export async function startLoader(): Promise<Loader> {
  const child = await forkReady('load-process.ts');
  return {
    pid: child.process.pid ?? -1,
    async run(spec) {
      child.process.send(spec);
      const [result] = (await once(child.process, 'message')) as [LoadResult];
      return result;
    },
    stop: () => void child.process.kill(),
  };
}

/** Starts a module of this folder as a process and waits for its first message. The module ends when its channel closes. */
export async function forkReady(module: string): Promise<{ process: ChildProcess; message: unknown }> {
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [message] = await once(child, 'message');
  return { process: child, message };
}

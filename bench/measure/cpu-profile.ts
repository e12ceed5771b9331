import { writeFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Service } from '../../tests/kit/service.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Lets Node.js be profiled while it runs. */
export const PROFILED = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** What is no work. */
const IDLE = new Set(['(idle)', '(root)']);

/** V8's CPU profile, as far as it is read here. Times in microseconds. */
interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Profiles a service that was started with {@link PROFILED}, by Node.js's own profiler. */
export class Profiler {
  readonly #socket: WebSocket;
  #commands = 0;

  static async connect(service: Pick<Service, 'log'>): Promise<Profiler> {
    const [url] = /ws:\/\/\S+/.exec(service.log()) ?? [];
    if (url === undefined) throw new Error('the service does not listen for a profiler');
    const socket = new WebSocket(url);
    await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
    const profiler = new Profiler(socket);
    await profiler.#send('Profiler.enable');
    await profiler.#send('Profiler.setSamplingInterval', { interval: 250 });
    return profiler;
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  async start(): Promise<void> {
    await this.#send('Profiler.start');
  }

  /** Writes the profile to a file, for Chrome's developer tools, and returns the own time of each function in it, in microseconds. */
  async stop(file: string): Promise<ReadonlyMap<string, number>> {
    const { profile } = (await this.#send('Profiler.stop')) as { profile: CpuProfile };
    this.#socket.close();
    await writeFile(file, JSON.stringify(profile));
    return ownTimes(profile);
  }

  #send(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    this.#commands += 1;
    const id = this.#commands;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const onMessage = ({ data }: MessageEvent) => {
      const message = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } };
      if (message.id !== id) return;
      this.#socket.removeEventListener('message', onMessage);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
    };
    this.#socket.addEventListener('message', onMessage);
    this.#socket.send(JSON.stringify({ id, method, params }));
    return promise;
  }
}

function ownTimes({ nodes, samples, timeDeltas }: CpuProfile): ReadonlyMap<string, number> {
  const labels = new Map(nodes.map(({ id, callFrame }) => [id, labelOf(callFrame)]));
  const us = new Map<string, number>();
  for (const [index, sample] of samples.entries()) {
    const label = labels.get(sample) ?? '';
    // A sample lasts until the next one.
    us.set(label, (us.get(label) ?? 0) + (timeDeltas[index + 1] ?? 0));
  }
  for (const name of IDLE) us.delete(name);
  return us;
}

function labelOf({ functionName, url, lineNumber }: CpuProfile['nodes'][number]['callFrame']): string {
  if (url === '') return functionName;
  const file = url.startsWith('file:') ? relative(ROOT, fileURLToPath(url)) : url;
  // The folder of a package says its version and not where it lies.
  return `${functionName || '(anonymous)'} ${file.replace(/^.*node_modules\//, '')}:${lineNumber + 1}`;
}

import { cpuTimeUs } from '../measure/cpu-time.ts';
import { type Forked, forkReady } from './fork.ts';
import type { Loader, LoadShape } from './load.ts';

/** The server that ingest-api is compared with, as a process. It ends with this one. */
export class BareFastify implements Disposable {
  readonly #child: Forked;

  static async start(): Promise<BareFastify> {
    return new BareFastify(await forkReady('bare-fastify-process.ts'));
  }

  private constructor(child: Forked) {
    this.#child = child;
  }

  /** Sends it a load. CPU time in microseconds a request. */
  async measure(loader: Loader, shape: LoadShape): Promise<{ requestsPerSecond: number; cpuUs: number }> {
    const { pid, message } = this.#child;
    const before = await cpuTimeUs(pid);
    const { requests, seconds } = await loader.run({ ...shape, url: String(message), key: 'none', firstEvent: 0 });
    return { requestsPerSecond: requests / seconds, cpuUs: ((await cpuTimeUs(pid)) - before) / requests };
  }

  [Symbol.dispose](): void {
    this.#child.process.kill();
  }
}

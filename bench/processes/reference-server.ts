import { cpuTimeUs } from '../measure/cpu-time.ts';
import { type Forked, forkReady } from './fork.ts';
import type { Loader, LoadResult, LoadShape } from './load.ts';

/** What a reference server did under a load. */
export interface MeasuredServer extends Pick<LoadResult, 'latencyMs'> {
  readonly requestsPerSecond: number;
  /** CPU time of the server, in microseconds a request. */
  readonly cpuUs: number;
}

/** A server that ingest-api is compared with, as a process. It ends with this one. */
export class ReferenceServer implements Disposable {
  readonly #child: Forked;

  /** Plain Fastify, which parses the same JSON and responds. */
  static async startBare(): Promise<ReferenceServer> {
    return new ReferenceServer(await forkReady('bare-fastify-process.ts'));
  }

  /** The same, which sends each request to Kafka as a message of its own, and responds when Kafka has acknowledged it. */
  static async startProducing(brokers: readonly string[]): Promise<ReferenceServer> {
    return new ReferenceServer(await forkReady('producing-fastify-process.ts', brokers));
  }

  private constructor(child: Forked) {
    this.#child = child;
  }

  async measure(loader: Loader, shape: LoadShape): Promise<MeasuredServer> {
    const { pid, message } = this.#child;
    const before = await cpuTimeUs(pid);
    const load = { ...shape, url: String(message), key: 'none', firstEvent: 0 };
    const { requests, seconds, latencyMs } = await loader.run(load);
    return { requestsPerSecond: requests / seconds, cpuUs: ((await cpuTimeUs(pid)) - before) / requests, latencyMs };
  }

  [Symbol.dispose](): void {
    this.#child.process.kill();
  }
}

import { once } from 'node:events';
import type { LoadForm } from '../data/forms.ts';
import { type Forked, forkReady } from './fork.ts';

/** How much is sent, and how. */
export interface LoadShape {
  readonly eventsPerRequest: number;
  readonly connections: number;
  readonly durationMs: number;
  readonly gzip?: boolean;
  /** Default: `submissions`. */
  readonly form?: LoadForm;
  /** Sent evenly, as far as the connections suffice. Default: as many as the server responds to. */
  readonly requestsPerSecond?: number;
  /** Whether a request is sent again, with the same uuids, until it is acknowledged. Default: any other response is a fault. */
  readonly repeats?: boolean;
}

export interface LoadSpec extends LoadShape {
  readonly url: string;
  readonly key: string;
  /** The number of the first event; the others follow it. */
  readonly firstEvent: number;
}

/** What the process is told: to begin a load, or to end the one that runs. */
export type LoadOrder = LoadSpec | 'stop';

export interface LoadResult {
  /** How many were acknowledged: had the response of their form. */
  readonly requests: number;
  readonly events: number;
  /** From the first request to the last response. */
  readonly seconds: number;
  /** How long a response took; at a given rate, since its request was due. */
  readonly latencyMs: { readonly median: number; readonly p99: number };
  /** The sum of the numbers of the events, in decimal; 0 for calls, whose uuids have no numbers. */
  readonly numbersSum: string;
  /** The first other response. With one, the figures are void. */
  readonly fault: string | undefined;
}

/** A process that sends submissions. It ends with this one. */
export class Loader implements Disposable {
  readonly #child: Forked;

  static async start(): Promise<Loader> {
    return new Loader(await forkReady('load-process.ts'));
  }

  private constructor(child: Forked) {
    this.#child = child;
  }

  get pid(): number {
    return this.#child.pid;
  }

  async run(spec: LoadSpec): Promise<LoadResult> {
    this.#child.process.send(spec);
    const [result] = (await once(this.#child.process, 'message')) as [LoadResult];
    return result;
  }

  /** Ends the load that runs before its time. */
  stop(): void {
    this.#child.process.send('stop');
  }

  [Symbol.dispose](): void {
    this.#child.process.kill();
  }
}

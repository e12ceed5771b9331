import { once } from 'node:events';
import { type Forked, forkReady } from './fork.ts';

/** How much is sent, and how. */
export type LoadForm = 'submissions' | 'calls' | 'posthog';

export interface LoadShape {
  readonly eventsPerRequest: number;
  readonly connections: number;
  readonly durationMs: number;
  readonly gzip?: boolean;
  /** `calls`: batches of track calls, as `@segment/analytics-node` sends them; `posthog`: of events, as `posthog-node` does. Default: `submissions`. */
  readonly form?: LoadForm;
  /** Sent evenly, as far as the connections suffice. Default: as many as the server responds to. */
  readonly requestsPerSecond?: number;
}

export interface LoadSpec extends LoadShape {
  readonly url: string;
  readonly key: string;
  /** The number of the first event; the others follow it. */
  readonly firstEvent: number;
}

export interface LoadResult {
  /** How many had the response 202, or 200 to calls and events of PostHog. */
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

  [Symbol.dispose](): void {
    this.#child.process.kill();
  }
}

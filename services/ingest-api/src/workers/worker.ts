import { once } from 'node:events';
import { sleep } from '@sluice/shared/base/retry';
import { AggregatorRegistry, Registry } from 'prom-client';

// What a worker and the primary process tell one another: that all workers are ready, to stop, and the metrics of all.

const POLL_MS = 100;

/** A worker tells the primary process that it is ready; the primary tells all workers once all of them are. */
export type ReadyMessage = { readonly type: 'worker is ready' } | { readonly type: 'all workers are ready' };

/**
 * Makes the readiness of a worker that of all workers: a request may be served by any of them.
 *
 * @param missing returns what keeps this worker from being ready, each as a short phrase
 */
export function readyTogether(missing: () => Promise<readonly string[]>): () => Promise<readonly string[]> {
  const worker = new ReadyWorker(missing);
  process.on('message', (message: ReadyMessage) => {
    if (message?.type === 'all workers are ready') worker.noteAllReady();
  });
  void worker.tellWhenReady();
  return () => worker.missing();
}

class ReadyWorker {
  readonly #ownMissing: () => Promise<readonly string[]>;
  #allReady = false;

  constructor(ownMissing: () => Promise<readonly string[]>) {
    this.#ownMissing = ownMissing;
  }

  noteAllReady(): void {
    this.#allReady = true;
  }

  async tellWhenReady(): Promise<void> {
    while ((await this.#ownMissing()).length > 0) await sleep(POLL_MS);
    process.send?.({ type: 'worker is ready' } satisfies ReadyMessage);
  }

  async missing(): Promise<readonly string[]> {
    const own = await this.#ownMissing();
    return own.length > 0 || this.#allReady ? own : ['another worker is not ready yet'];
  }
}

/**
 * The primary process tells a worker to stop. By a signal it would be the second one wherever a signal goes to all
 * processes of the service, and a second signal ends a process at once.
 */
export interface StopMessage {
  readonly type: 'stop';
}

/** Calls `stop` when the primary process tells this worker to stop. */
export function stopWithPrimary(stop: (reason: string) => void): void {
  process.on('message', (message: StopMessage) => {
    if (message?.type === 'stop') stop('the primary process stops');
  });
}

const TYPE = 'metrics of all workers';

/** What a worker asks the primary process. */
export interface MetricsRequest {
  readonly type: typeof TYPE;
  readonly id: number;
}

export interface MetricsResponse extends MetricsRequest {
  /** `undefined` when they cannot be collected. */
  text: string | undefined;
}

/** The metrics of a worker. Read as text, they are those of all workers together. */
export class WorkerRegistry extends Registry {
  #asked = 0;

  constructor() {
    super();
    AggregatorRegistry.setRegistries([this]);
    // Responds to the primary process with the metrics of this worker.
    new AggregatorRegistry();
  }

  /** @throws when a worker does not respond */
  override async metrics(): Promise<string> {
    this.#asked += 1;
    const request: MetricsRequest = { type: TYPE, id: this.#asked };
    process.send?.(request);
    for (;;) {
      const [response] = (await once(process, 'message')) as [MetricsResponse];
      if (response?.type !== TYPE || response.id !== request.id) continue;
      if (response.text === undefined) throw new Error('the metrics of the workers cannot be collected');
      return response.text;
    }
  }
}

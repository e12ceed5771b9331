import { sleep } from '@sluice/shared/base/retry';

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

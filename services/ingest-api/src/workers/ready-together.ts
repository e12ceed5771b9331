import { sleep } from '@sluice/shared/retry';

const POLL_MS = 100;

/** A worker tells the primary process that it is ready; the primary tells all workers once all of them are. */
export type ReadyMessage = { readonly type: 'worker is ready' } | { readonly type: 'all workers are ready' };

/**
 * Makes the readiness of a worker that of all workers: a request may be served by any of them.
 *
 * @param missing returns what keeps this worker from being ready, each as a short phrase
 */
export function readyTogether(missing: () => Promise<readonly string[]>): () => Promise<readonly string[]> {
  let allReady = false;
  process.on('message', (message: ReadyMessage) => {
    if (message?.type === 'all workers are ready') allReady = true;
  });

  async function tellWhenReady(): Promise<void> {
    while ((await missing()).length > 0) await sleep(POLL_MS);
    process.send?.({ type: 'worker is ready' } satisfies ReadyMessage);
  }

  void tellWhenReady();
  return async () => {
    const own = await missing();
    return own.length > 0 || allReady ? own : ['another worker is not ready yet'];
  };
}

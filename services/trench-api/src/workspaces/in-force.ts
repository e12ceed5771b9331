import { Problem } from '@sluice/shared/http/problem';
import { sleep } from '@sluice/shared/service/retry';
import type { FastifyRequest } from 'fastify';
import type { Service } from '../upstream/service.ts';
import type { CreatedWorkspace } from './workspace-body.ts';

/** Services follow the keys file within a second. After this time a response no longer waits for them, in milliseconds. */
const WAIT_MS_MAX = 5_000;
const POLL_INTERVAL_MS = 100;

/**
 * Waits until both services know the keys of a new workspace, so that a client can use them at once. Of several processes
 * of a service, one knows them then.
 */
export async function untilInForce(
  { publicApiKey, privateApiKey }: CreatedWorkspace,
  { ingest, query }: { readonly ingest: Service; readonly query: Service },
  of: FastifyRequest,
): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  await Promise.all([
    until(deadline, () => ingest.send({ method: 'POST', path: '/v1/batch', key: publicApiKey, body: EMPTY, of })),
    until(deadline, () => query.send({ method: 'GET', path: '/events?limit=0&total=none', key: privateApiKey, of })),
  ]);
}

const EMPTY = '{"batch":[]}';

/** Resolves once the key is known. Where a service cannot be reached, it will know the key when it can. */
async function until(deadline: number, send: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await send();
      return;
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'unauthorized')) return;
    }
    if (performance.now() > deadline) return;
    await sleep(POLL_INTERVAL_MS);
  }
}

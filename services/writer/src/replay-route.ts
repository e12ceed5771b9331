import { invalidRequest, Problem, RETRY_UNAVAILABLE_SECONDS } from '@sluice/shared/http/problem';
import { type DeadLetters, NotReplayable } from '@sluice/storage/dead-letters';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';

interface Parts {
  Params: { readonly id: string };
}

/** What query-api passes on, in bytes, and what surrounds it. */
const BODY_BYTES_MAX = 2 * 1_024 * 1_024;

const replayBody = z.strictObject({ call: z.string().optional() });

/**
 * Registers `POST /dead-letters/:id/replay`, which query-api sends once it has checked whose dead letter it is. It needs no key, as
 * all routes of the writer: it tells nothing of the row, and to repeat it changes nothing. A body may have the call that is sent in
 * place of a rejected one.
 */
export function registerReplay(app: FastifyInstance, deadLetters: Pick<DeadLetters, 'replay'>): void {
  // One after the other: each opens a connection to Kafka.
  let last: Promise<unknown> = Promise.resolve();
  app.post<Parts>(
    '/dead-letters/:id/replay',
    { bodyLimit: BODY_BYTES_MAX },
    async ({ params: { id }, body }, reply) => {
      const result = replayBody.safeParse(body ?? {});
      if (!result.success) throw invalidRequest(result.error.issues);
      const replay = () => deadLetters.replay(id, result.data.call);
      const running = last.then(replay, replay);
      last = running.catch(() => undefined);
      if (!(await running.catch(problemOf))) throw new Problem('not_found', 'There is no such dead letter.');
      return await reply.status(204).send();
    },
  );
}

function problemOf(cause: unknown): never {
  if (cause instanceof NotReplayable) throw new Problem('not_replayable', cause.message);
  const detail = 'Kafka or ClickHouse has not acknowledged the dead letter; send the request again.';
  throw new Problem('event_log_unavailable', detail, { retryAfter: RETRY_UNAVAILABLE_SECONDS, cause });
}

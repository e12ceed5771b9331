import type { FastifyReply } from 'fastify';

/**
 * Answers a request as long as its client is there. The signal ends the request's queries: when the client goes away,
 * and when one of them has failed and the others are no longer needed.
 */
export async function whileConnected(
  reply: FastifyReply,
  answer: (signal: AbortSignal) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const controller = new AbortController();
  let gone = false;
  reply.raw.once('close', () => {
    if (reply.raw.writableFinished) return;
    gone = true;
    controller.abort();
  });
  try {
    return await answer(controller.signal);
  } catch (error) {
    controller.abort();
    if (!gone) throw error;
    // Nobody is left to be answered.
    return reply.hijack();
  }
}

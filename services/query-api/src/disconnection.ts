import type { FastifyReply } from 'fastify';

/**
 * Handles a request as long as its client is connected. The signal ends the request's queries: when the client
 * disconnects, and when one of them has failed and the others are no longer needed.
 */
export async function whileConnected(
  reply: FastifyReply,
  handle: (signal: AbortSignal) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const controller = new AbortController();
  let disconnected = false;
  reply.raw.once('close', () => {
    if (reply.raw.writableFinished) return;
    disconnected = true;
    controller.abort();
  });
  try {
    return await handle(controller.signal);
  } catch (error) {
    controller.abort();
    if (!disconnected) throw error;
    // There is no one to send the error to.
    return reply.hijack();
  }
}

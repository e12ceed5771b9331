import type { FastifyReply } from 'fastify';

/**
 * Calls a function once, when the response is sent or its client has left.
 *
 * @param timeoutMs after so many milliseconds the client is cut off; default: never
 */
export function whenSent({ raw }: FastifyReply, onEnd: () => void, timeoutMs?: number): void {
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => raw.destroy(), timeoutMs);
  const end = () => {
    clearTimeout(timer);
    for (const event of ['finish', 'close']) raw.off(event, end);
    onEnd();
  };
  if (raw.closed) {
    end();
    return;
  }
  for (const event of ['finish', 'close']) raw.once(event, end);
}

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

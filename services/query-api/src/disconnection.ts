import { setMaxListeners } from 'node:events';
import type { FastifyReply } from 'fastify';

/**
 * Calls a function once, when the response is sent or its client has left.
 *
 * @param timeoutMs after so many milliseconds the client is cut off; default: never
 */
export function whenSent({ raw, request }: FastifyReply, onEnd: () => void, timeoutMs?: number): void {
  const { socket } = request.raw;
  const cutOff = () => (raw.socket ? raw.destroy() : socket.destroy());
  const timer = timeoutMs === undefined ? undefined : setTimeout(cutOff, timeoutMs);
  const end = () => {
    clearTimeout(timer);
    for (const event of ['finish', 'close']) raw.off(event, end);
    socket.off('close', end);
    onEnd();
  };
  if (raw.closed || socket.destroyed) {
    end();
    return;
  }
  for (const event of ['finish', 'close']) raw.once(event, end);
  // A client may send many requests at once. Of a response that is behind another one Node.js says nothing when the
  // connection closes.
  setMaxListeners(0, socket);
  socket.once('close', end);
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
  whenSent(reply, () => {
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

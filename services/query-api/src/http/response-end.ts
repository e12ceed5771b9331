import type { FastifyReply } from 'fastify';

/**
 * Calls a function once, when the response is sent or its client has left.
 *
 * @param timeoutMs after so many milliseconds the client is cut off; default: never
 */
export function onResponseEnd({ raw }: FastifyReply, onEnd: () => void, timeoutMs?: number): void {
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

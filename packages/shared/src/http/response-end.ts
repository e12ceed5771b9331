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

/**
 * Runs work with a signal that aborts when the client leaves before it has its response, or when the work fails.
 *
 * @param whenLeft returns the result in place of an error of the work when the client has left. Default: the error is thrown
 */
export async function untilDisconnected<Result>(
  { raw }: FastifyReply,
  work: (signal: AbortSignal) => Promise<Result>,
  whenLeft?: () => Result,
): Promise<Result> {
  const controller = new AbortController();
  let hasLeft = false;
  raw.once('close', () => {
    if (raw.writableFinished) return;
    hasLeft = true;
    controller.abort();
  });
  try {
    return await work(controller.signal);
  } catch (error) {
    controller.abort();
    if (hasLeft && whenLeft) return whenLeft();
    throw error;
  }
}

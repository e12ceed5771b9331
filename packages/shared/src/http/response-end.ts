import type { FastifyReply, FastifyRequest } from 'fastify';

/** So much of a body is read and dropped after its request was refused, in bytes. */
export const DROPPED_BYTES_MAX = 64_000_000;

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

/**
 * Keeps the connection of a request whose body has not arrived yet open beyond its response, and drops the rest of the body.
 * Many clients read only when they have sent everything: to close the connection at once would take the response away from
 * them. It is closed once more than {@link DROPPED_BYTES_MAX} have come, by Node.js once the request takes too long, and after
 * the body where the client does not want to go on. Call it before the response is sent.
 */
export function dropRestOfBody({ raw: request }: FastifyRequest, { raw: response }: FastifyReply): void {
  const { socket, headers } = request;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (!hasBody || request.readableEnded) return;
  const isLast = !response.shouldKeepAlive;
  response.shouldKeepAlive = true;
  let dropped = 0;
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > DROPPED_BYTES_MAX) socket.destroy();
  });
  const end = () => {
    if (isLast && request.readableEnded && response.writableFinished) socket.destroySoon();
  };
  request.once('end', end).resume();
  response.once('finish', end);
}

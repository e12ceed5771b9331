import type { FastifyReply } from 'fastify';

/** Runs work with a signal that aborts when the client leaves before it has its response. */
export async function whileConnected<Result>(
  { raw }: FastifyReply,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const abort = () => controller.abort();
  raw.once('close', abort);
  try {
    return await work(controller.signal);
  } finally {
    raw.off('close', abort);
  }
}

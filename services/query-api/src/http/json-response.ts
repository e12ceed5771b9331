import { Readable } from 'node:stream';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import type { FastifyReply } from 'fastify';
import { reserve } from './request-memory.ts';

/** A shorter response is sent as a whole, so that an error while it is read still becomes an error response. */
const WHOLE_BYTES_MAX = 1_024 * 1_024;

/** What a response ends with. */
export interface JsonTail {
  /** The last chunk, if it is known already. */
  readonly known?: string | undefined;
  /** Finds out the last chunk. It must not fail: what came before has been sent by then. */
  find(): Promise<string>;
}

/**
 * Sends a response whose JSON comes in chunks. A long one is streamed, no faster than the client reads it; an error
 * after its first mebibyte can only cut it off. All chunks are sent before the wait for the tail begins.
 *
 * Chunks are sent as bytes, since Node takes several times longer to write a large string to a socket.
 */
export async function sendJson(
  reply: FastifyReply,
  chunks: AsyncGenerator<string, void, undefined>,
  tail?: () => JsonTail,
): Promise<FastifyReply> {
  reply.type('application/json; charset=utf-8');
  const { begun, done } = await beginningOf(chunks, reply.request.memory);
  if (done) {
    const last = tail?.();
    const end = last ? last.known : '';
    if (end !== undefined) return await reply.send(Buffer.from(begun + end));
  }
  return await reply.send(Readable.from(asBytes(begun, chunks, tail), { objectMode: false }));
}

/** Returns what is sent at once. It waits for a client that may read slowly; what is streamed later takes no more. */
async function beginningOf(chunks: AsyncGenerator<string, void, undefined>, memory: Reservation) {
  let begun = '';
  let bytes = 0;
  try {
    while (bytes < WHOLE_BYTES_MAX) {
      const next = await chunks.next();
      if (next.done) return { begun, done: true };
      const chunkBytes = Buffer.byteLength(next.value);
      reserve(memory, chunkBytes);
      begun += next.value;
      bytes += chunkBytes;
    }
    return { begun, done: false };
  } catch (error) {
    // Ends the query.
    await chunks.return();
    throw error;
  }
}

async function* asBytes(
  begun: string,
  chunks: AsyncGenerator<string, void, undefined>,
  tail: (() => JsonTail) | undefined,
): AsyncGenerator<Buffer> {
  yield Buffer.from(begun);
  for await (const chunk of chunks) yield Buffer.from(chunk);
  const last = tail?.();
  if (last) yield Buffer.from(last.known ?? (await last.find()));
}

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/** A shorter response is sent as a whole, so that an error while it is read still becomes an error response. */
const WHOLE_CHARACTERS_MAX = 1_024 * 1_024;

/**
 * Sends a response whose JSON comes in chunks. A long one is streamed, no faster than the client reads it; an error
 * after its first mebibyte can only cut it off.
 *
 * Chunks are sent as bytes, since Node takes several times longer to write a large string to a socket.
 */
export async function sendJson(
  reply: FastifyReply,
  chunks: AsyncGenerator<string, void, undefined>,
): Promise<FastifyReply> {
  reply.type('application/json; charset=utf-8');
  let text = '';
  for (;;) {
    const { done, value } = await chunks.next();
    if (done) return await reply.send(Buffer.from(text));
    text += value;
    if (text.length >= WHOLE_CHARACTERS_MAX) break;
  }
  return await reply.send(Readable.from(asBytes(text, chunks), { objectMode: false }));
}

async function* asBytes(text: string, chunks: AsyncGenerator<string, void, undefined>): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
  for await (const chunk of chunks) yield Buffer.from(chunk);
}

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/** An answer shorter than this is sent as a whole, so that an error while it is read still gets its proper answer. */
const WHOLE_CHARACTERS_MAX = 1_024 * 1_024;

/**
 * Sends JSON text that comes in pieces. A long answer is passed on as it comes, and no faster than the client takes it;
 * an error after its first mebibyte can only cut it off.
 *
 * As bytes: a page of 70 KB that is handed to the socket as a string costs Node 3 ms instead of 0.5.
 */
export async function sendJson(
  reply: FastifyReply,
  pieces: AsyncGenerator<string, void, undefined>,
): Promise<FastifyReply> {
  reply.type('application/json; charset=utf-8');
  let text = '';
  for (;;) {
    const { done, value } = await pieces.next();
    if (done) return await reply.send(Buffer.from(text));
    text += value;
    if (text.length >= WHOLE_CHARACTERS_MAX) break;
  }
  return await reply.send(Readable.from(following(text, pieces), { objectMode: false }));
}

async function* following(text: string, pieces: AsyncGenerator<string, void, undefined>): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
  for await (const piece of pieces) yield Buffer.from(piece);
}

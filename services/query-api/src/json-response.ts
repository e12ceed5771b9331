import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/** A shorter response is sent as a whole, so that an error while it is read still becomes an error response. */
const WHOLE_CHARACTERS_MAX = 1_024 * 1_024;

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
  let text = '';
  let done = false;
  while (!done && text.length < WHOLE_CHARACTERS_MAX) {
    const next = await chunks.next();
    if (next.done) done = true;
    else text += next.value;
  }
  if (done) {
    const last = tail?.();
    if (!last) return await reply.send(Buffer.from(text));
    if (last.known !== undefined) return await reply.send(Buffer.from(text + last.known));
  }
  return await reply.send(Readable.from(asBytes(text, chunks, tail), { objectMode: false }));
}

async function* asBytes(
  text: string,
  chunks: AsyncGenerator<string, void, undefined>,
  tail: (() => JsonTail) | undefined,
): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
  for await (const chunk of chunks) yield Buffer.from(chunk);
  const last = tail?.();
  if (last) yield Buffer.from(last.known ?? (await last.find()));
}

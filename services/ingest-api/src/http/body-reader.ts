import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import { Problem } from '@sluice/shared/http/problem';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { overloaded } from './problems.ts';

const DECOMPRESSORS: Readonly<Record<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> =
  {
    gzip: promisify(gunzip),
    deflate: promisify(inflate),
    br: promisify(brotliDecompress),
    zstd: promisify(zstdDecompress),
  };

/** The values of `Content-Encoding` that a body may have, besides `identity`. */
export const CONTENT_ENCODINGS = Object.keys(DECOMPRESSORS);

/** Time for a body to arrive, in milliseconds, on top of what its bytes take at the minimum speed. */
export const BODY_GRACE_MS = 5_000;

/** The minimum speed of a body, in bytes a second. */
export const BODY_BYTES_PER_SECOND_MIN = 64 * 1_024;

const SPEED_CHECK_MS = 1_000;

/** The header and the end of gzip data. */
const GZIP_BYTES_MIN = 18;

/** Memory is reserved for so many bytes after decompression at first, and for so many times those of the body. */
const EXPECTED_BYTES = 16 * 1_024;
const EXPECTED_RATIO = 16;

/**
 * Reads bodies of `application/json`, compressed or not, of at most `bytesMax` bytes after decompression. `request.body`
 * is then a Buffer, or `undefined` for an empty body. Memory is reserved as bytes arrive, so a client that announces a
 * body and does not send it holds almost none. A body that arrives too slowly is refused.
 */
export function registerBodyReader(app: FastifyInstance, bytesMax: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
    return await readBody(request, payload, bytesMax, () => encodingOf(request));
  });
}

/** As {@link registerBodyReader}, for bodies of any type; a body that begins as gzip data does is gzip data. */
export function registerAnyBodyReader(app: FastifyInstance, bytesMax: number): void {
  app.removeAllContentTypeParsers();
  // Fastify refuses what is no type at all.
  app.addHook('onRequest', (request, _reply, done) => {
    request.headers['content-type'] = 'application/json';
    done();
  });
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: FastifyRequest['raw']) => {
    const encoding = encodingOf(request);
    const isGzip = (body: Buffer) => encoding === 'identity' && body[0] === 0x1f && body[1] === 0x8b;
    return await readBody(request, payload, bytesMax, (body) => (isGzip(body) ? 'gzip' : encoding));
  });
}

function encodingOf({ headers }: FastifyRequest): string {
  // An empty header is a list of no encodings.
  return headers['content-encoding']?.trim().toLowerCase() || 'identity';
}

async function readBody(
  request: FastifyRequest,
  payload: FastifyRequest['raw'],
  bytesMax: number,
  encodingOfBody: (body: Buffer) => string,
): Promise<Buffer | undefined> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > bytesMax) throw tooLarge();
  const body = await receive(payload, announced, request.reservation, bytesMax);
  if (body.length === 0) return undefined;
  const encoding = encodingOfBody(body);
  return encoding === 'identity' ? body : await decompress(body, encoding, bytesMax, request.reservation);
}

/**
 * @param announced the `Content-Length`; 0 when there is none
 * @throws {Problem}
 */
function receive(
  payload: FastifyRequest['raw'],
  announced: number,
  reservation: Reservation | undefined,
  bytesMax: number,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const startedAt = performance.now();
  // One buffer that grows. To keep the chunks would cost more: one may hold a single byte of a large allocation.
  let buffer: Buffer = Buffer.alloc(0);
  let bytes = 0;

  function end(): void {
    clearInterval(timer);
    payload.off('data', onData).off('end', onEnd).off('error', onError);
  }

  function refuse(problem: Problem): void {
    end();
    reject(problem);
  }

  function makeRoom(needed: number): boolean {
    if (needed <= buffer.length) return true;
    const size = buffer.length === 0 ? needed : Math.min(2 * needed, bytesMax);
    if (reservation && !reservation.grow(size - buffer.length)) return false;
    const larger = Buffer.allocUnsafe(size);
    buffer.copy(larger, 0, 0, bytes);
    buffer = larger;
    return true;
  }

  /** A small body comes in one chunk of its size. It is not copied. */
  function takeWhole(chunk: Buffer): void {
    if (reservation && !reservation.grow(chunk.length)) refuse(overloaded());
    buffer = chunk;
    bytes = chunk.length;
  }

  function onData(chunk: Buffer): void {
    if (chunk.length === announced) takeWhole(chunk);
    else if (bytes + chunk.length > bytesMax) refuse(tooLarge());
    else if (!makeRoom(bytes + chunk.length)) refuse(overloaded());
    else bytes += chunk.copy(buffer, bytes);
  }

  function onEnd(): void {
    end();
    resolve(buffer.subarray(0, bytes));
  }

  function onError(error: Error): void {
    refuse(new Problem('invalid_request', 'The connection closed before the body was complete.', { cause: error }));
  }

  const timer = setInterval(() => {
    const lateMs = performance.now() - startedAt - BODY_GRACE_MS;
    if (bytes < (lateMs / 1_000) * BODY_BYTES_PER_SECOND_MIN) refuse(tooSlow());
  }, SPEED_CHECK_MS);
  payload.on('data', onData).on('end', onEnd).on('error', onError);
  return promise;
}

async function decompress(
  body: Buffer,
  encoding: string,
  bytesMax: number,
  reservation: Reservation | undefined,
): Promise<Buffer> {
  const decompressor = Object.hasOwn(DECOMPRESSORS, encoding) ? DECOMPRESSORS[encoding] : undefined;
  if (!decompressor) throw unsupportedEncoding();
  // The size after decompression is not known before. A body that turns out to be larger is decompressed again.
  for (let limit = Math.min(bytesMax, expectedBytes(body, encoding)); ; limit = bytesMax) {
    if (reservation && !reservation.grow(limit)) throw overloaded();
    try {
      const plain = await decompressor(body, { maxOutputLength: limit });
      reservation?.shrink(limit - plain.length + body.length);
      return plain;
    } catch (error) {
      reservation?.shrink(limit);
      const isLarger = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      if (!isLarger) throw new Problem('malformed_json', `The body is not ${encoding} data.`, { cause: error });
      if (limit === bytesMax) {
        throw new Problem('body_too_large', 'The body is larger than this service accepts after decompression.');
      }
    }
  }
}

/** What a body is expected to be after decompression, in bytes. It need not be true. */
function expectedBytes(body: Buffer, encoding: string): number {
  // The end of gzip data says how much it is (RFC 1952, ISIZE).
  if (encoding === 'gzip' && body.length >= GZIP_BYTES_MIN) return Math.max(1, body.readUInt32LE(body.length - 4));
  return EXPECTED_BYTES + EXPECTED_RATIO * body.length;
}

function unsupportedEncoding(): Problem {
  const supported = CONTENT_ENCODINGS.join(', ');
  return new Problem('unsupported_media_type', `The body's Content-Encoding must be one of: ${supported}.`, {
    headers: { 'accept-encoding': supported },
  });
}

function tooLarge(): Problem {
  return new Problem('body_too_large', 'The body is larger than this service accepts.');
}

function tooSlow(): Problem {
  return new Problem('body_too_slow', 'The body arrives too slowly; send it faster or in parts.');
}

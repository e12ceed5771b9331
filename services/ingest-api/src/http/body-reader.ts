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
  const body = await new ArrivingBody(payload, announced, request.reservation, bytesMax).receive();
  if (body.length === 0) return undefined;
  const encoding = encodingOfBody(body);
  return encoding === 'identity' ? body : await decompress(body, encoding, bytesMax, request.reservation);
}

/** A body that arrives. */
class ArrivingBody {
  readonly #payload: FastifyRequest['raw'];
  readonly #announced: number;
  readonly #reservation: Reservation | undefined;
  readonly #bytesMax: number;
  readonly #body = Promise.withResolvers<Buffer>();
  readonly #startedAt = performance.now();
  readonly #onData = (chunk: Buffer) => this.#take(chunk);
  readonly #onEnd = () => this.#finish();
  readonly #onError = (error: Error) => this.#refuse(brokenOff(error));
  #timer: NodeJS.Timeout | undefined;
  // One buffer that grows. To keep the chunks would cost more: one may hold a single byte of a large allocation.
  #buffer: Buffer = Buffer.alloc(0);
  #bytes = 0;

  /** @param announced the `Content-Length`; 0 when there is none */
  constructor(
    payload: FastifyRequest['raw'],
    announced: number,
    reservation: Reservation | undefined,
    bytesMax: number,
  ) {
    this.#payload = payload;
    this.#announced = announced;
    this.#reservation = reservation;
    this.#bytesMax = bytesMax;
  }

  /** @throws {Problem} */
  async receive(): Promise<Buffer> {
    this.#timer = setInterval(() => this.#checkSpeed(), SPEED_CHECK_MS);
    this.#payload.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onError);
    return await this.#body.promise;
  }

  #take(chunk: Buffer): void {
    if (chunk.length === this.#announced) this.#takeWhole(chunk);
    else if (this.#bytes + chunk.length > this.#bytesMax) this.#refuse(tooLarge());
    else if (!this.#makeRoom(this.#bytes + chunk.length)) this.#refuse(overloaded());
    else this.#bytes += chunk.copy(this.#buffer, this.#bytes);
  }

  /** A small body comes in one chunk of its size. It is not copied. */
  #takeWhole(chunk: Buffer): void {
    if (this.#reservation && !this.#reservation.grow(chunk.length)) this.#refuse(overloaded());
    this.#buffer = chunk;
    this.#bytes = chunk.length;
  }

  #makeRoom(needed: number): boolean {
    if (needed <= this.#buffer.length) return true;
    const size = this.#buffer.length === 0 ? needed : Math.min(2 * needed, this.#bytesMax);
    if (this.#reservation && !this.#reservation.grow(size - this.#buffer.length)) return false;
    const larger = Buffer.allocUnsafe(size);
    this.#buffer.copy(larger, 0, 0, this.#bytes);
    this.#buffer = larger;
    return true;
  }

  #checkSpeed(): void {
    const lateMs = performance.now() - this.#startedAt - BODY_GRACE_MS;
    if (this.#bytes < (lateMs / 1_000) * BODY_BYTES_PER_SECOND_MIN) this.#refuse(tooSlow());
  }

  #finish(): void {
    this.#stopListening();
    this.#body.resolve(this.#buffer.subarray(0, this.#bytes));
  }

  #refuse(problem: Problem): void {
    this.#stopListening();
    this.#body.reject(problem);
  }

  #stopListening(): void {
    clearInterval(this.#timer);
    this.#payload.off('data', this.#onData).off('end', this.#onEnd).off('error', this.#onError);
  }
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

function brokenOff(error: Error): Problem {
  return new Problem('invalid_request', 'The connection closed before the body was complete.', { cause: error });
}

function tooSlow(): Problem {
  return new Problem('body_too_slow', 'The body arrives too slowly; send it faster or in parts.');
}

import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib';
import { Problem } from '@sluice/shared/http/problem';
import { parseJson } from '@sluice/shared/json';
import type { FastifyInstance, FastifyRequest } from 'fastify';

const DECOMPRESSORS: Readonly<Record<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> =
  {
    gzip: promisify(gunzip),
    deflate: promisify(inflate),
    br: promisify(brotliDecompress),
    zstd: promisify(zstdDecompress),
  };

/** What a body may be compressed with. */
export const CONTENT_ENCODINGS = Object.keys(DECOMPRESSORS);

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Bodies are JSON in UTF-8, compressed or not, of at most `bytesMax` bytes once decompressed. An empty body is
 * `undefined`; a JSON name such as `__proto__` is a name like any other.
 */
export function registerBodyParser(app: FastifyInstance, bytesMax: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<Buffer>(
    'application/json',
    { parseAs: 'buffer' },
    (request: FastifyRequest, body: Buffer, done) => {
      const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
      // Without a promise, which most bodies do not need.
      if (body.length === 0) done(null, undefined);
      else if (encoding === 'identity') finish(() => parseBody(body), done);
      else decompress(body, encoding, bytesMax).then((plain) => finish(() => parseBody(plain), done), done);
    },
  );
}

function finish(parse: () => unknown, done: (error: Error | null, body?: unknown) => void): void {
  let body: unknown;
  try {
    body = parse();
  } catch (error) {
    done(error as Error);
    return;
  }
  done(null, body);
}

async function decompress(body: Buffer, encoding: string, bytesMax: number): Promise<Buffer> {
  const decompressor = Object.hasOwn(DECOMPRESSORS, encoding) ? DECOMPRESSORS[encoding] : undefined;
  if (!decompressor) {
    const supported = CONTENT_ENCODINGS.join(', ');
    throw new Problem('unsupported_media_type', `The body's Content-Encoding must be one of: ${supported}.`, {
      headers: { 'accept-encoding': supported },
    });
  }
  try {
    return await decompressor(body, { maxOutputLength: bytesMax });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new Problem('body_too_large', 'The body is larger than this service accepts, once decompressed.');
    }
    throw new Problem('malformed_json', `The body is not ${encoding} data.`, { cause: error });
  }
}

function parseBody(body: Buffer): unknown {
  let text: string;
  try {
    text = utf8.decode(body);
  } catch (error) {
    throw new Problem('malformed_json', 'The body is not UTF-8.', { cause: error });
  }
  try {
    return parseJson(text);
  } catch (error) {
    throw new Problem('malformed_json', 'The body is not JSON.', { cause: error });
  }
}

import { constants, createBrotliCompress, createGzip, createZstdCompress } from 'node:zlib';
import compress from '@fastify/compress';
import type { FastifyInstance } from 'fastify';

/** How far back a compressor looks for what repeats: 256 KiB. With the defaults it would hold up to 5 MiB, now 1.5. */
const WINDOW_BITS = 18;

/** Qualities that cost query-api about as much CPU as reading the page does; a higher one saves few bytes. */
const BROTLI = { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: WINDOW_BITS };

const ZSTD = { [constants.ZSTD_c_windowLog]: WINDOW_BITS };

/** What a compressor and the chunks in it take at most, in bytes. */
export const COMPRESSOR_BYTES = 1.5 * 1_024 * 1_024;

/** Smaller responses are sent as they are, in bytes. */
export const COMPRESSED_BYTES_MIN = 1_024;

/**
 * Compresses responses of the routes that follow, with what the client accepts. Each chunk is flushed: the records of a
 * page must not wait for its total.
 */
export function compressResponses(app: FastifyInstance): void {
  app.register(compress, {
    encodings: ['zstd', 'br', 'gzip'],
    threshold: COMPRESSED_BYTES_MIN,
    globalDecompression: false,
    zlib: {
      createZstdCompress: () => createZstdCompress({ flush: constants.ZSTD_e_flush, params: ZSTD }),
      createBrotliCompress: () => createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH, params: BROTLI }),
      createGzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
    },
  });
}

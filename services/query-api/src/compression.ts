import { constants, createBrotliCompress, createGzip, createZstdCompress } from 'node:zlib';
import compress from '@fastify/compress';
import type { FastifyInstance } from 'fastify';

/** Qualities that cost query-api about as much CPU as reading the page does; a higher one saves few bytes. */
const BROTLI = { [constants.BROTLI_PARAM_QUALITY]: 4 };

/** Smaller responses are sent as they are, in bytes. */
const BYTES_MIN = 1_024;

/**
 * Compresses responses of the routes that follow, with what the client accepts. Each chunk is flushed: the records of a
 * page must not wait for its total.
 */
export function compressResponses(app: FastifyInstance): void {
  app.register(compress, {
    encodings: ['zstd', 'br', 'gzip'],
    threshold: BYTES_MIN,
    globalDecompression: false,
    zlib: {
      createZstdCompress: () => createZstdCompress({ flush: constants.ZSTD_e_flush }),
      createBrotliCompress: () => createBrotliCompress({ flush: constants.BROTLI_OPERATION_FLUSH, params: BROTLI }),
      createGzip: () => createGzip({ flush: constants.Z_SYNC_FLUSH }),
    },
  });
}

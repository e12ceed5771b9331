import { Problem } from '@sluice/shared/http/problem';
import { parseJson } from '@sluice/shared/text/json';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { reserve } from './request-memory.ts';

/** The memory of a body as a multiple of its bytes: the body, its texts, and what is sent to ClickHouse. */
const MEMORY_PER_BYTE = 6;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Has routes take bodies of the type application/json alone, whose memory is reserved before they are read. A body that is no
 * JSON in UTF-8 gets `malformed_json`.
 *
 * @param bytesMax the largest body; one that does not announce its size counts as so large
 */
export function acceptJson(routes: FastifyInstance, bytesMax: number): void {
  routes.removeAllContentTypeParsers();
  routes.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_: FastifyRequest, body: Buffer) => {
    try {
      return parseJson(utf8.decode(body));
    } catch (cause) {
      throw new Problem('malformed_json', 'The body is not JSON in UTF-8.', { cause });
    }
  });
  routes.addHook('preParsing', async ({ headers, memory }) => {
    const announced = Number(headers['content-length'] ?? bytesMax);
    reserve(memory, MEMORY_PER_BYTE * Math.min(announced, bytesMax));
  });
}

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Has routes take bodies of the type application/json alone. One that is no JSON in UTF-8 gets `malformed_json`. One without a byte
 * is `undefined`: many clients send the type with every request, also with a DELETE.
 *
 * @param parse returns the value of a text, and throws where this is no JSON
 */
export function acceptJsonBodies(routes: FastifyInstance, parse: (text: string) => unknown): void {
  routes.removeAllContentTypeParsers();
  routes.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_: FastifyRequest, body: Buffer) => {
    return body.length === 0 ? undefined : parseJson(body, parse);
  });
}

/** Returns the value of a body. @throws {Problem} `malformed_json` */
export function parseJson(body: Buffer, parse: (text: string) => unknown): unknown {
  try {
    return parse(utf8.decode(body));
  } catch (cause) {
    throw new Problem('malformed_json', 'The body is not JSON in UTF-8.', { cause });
  }
}

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from './problem.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

export interface JsonBodyOptions {
  /** Returns the value of a text. It throws where this is no JSON. */
  readonly parse: (text: string) => unknown;
  /** Whether a body without a byte is `undefined`. Default: false, it is no JSON. */
  readonly mayBeEmpty?: boolean;
}

/** Has routes take bodies of the type application/json alone. One that is no JSON in UTF-8 gets `malformed_json`. */
export function acceptJsonBodies(routes: FastifyInstance, { parse, mayBeEmpty = false }: JsonBodyOptions): void {
  routes.removeAllContentTypeParsers();
  routes.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_: FastifyRequest, body: Buffer) => {
    if (mayBeEmpty && body.length === 0) return undefined;
    try {
      return parse(utf8.decode(body));
    } catch (cause) {
      throw new Problem('malformed_json', 'The body is not JSON in UTF-8.', { cause });
    }
  });
}

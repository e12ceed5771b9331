import { Problem } from '@sluice/shared/http/problem';
import { parseExactJson } from '@sluice/shared/text/json';
import { isJsonObject } from '@sluice/submissions/reading/json-object';
import type { FastifyInstance, FastifyRequest } from 'fastify';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads bodies of the type application/json, with all digits of their numbers. Others get `415`. */
export function registerJsonReader(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_: FastifyRequest, body: Buffer) => {
    // A DELETE has the header, too, where a client sets it always.
    if (body.length === 0) return undefined;
    try {
      return parseExactJson(utf8.decode(body));
    } catch (cause) {
      throw new Problem('malformed_json', 'The body is not JSON in UTF-8.', { cause });
    }
  });
}

/**
 * Returns a member of the body that has to be a list.
 *
 * @throws {Problem} `invalid_request`
 */
export function listOf(body: unknown, name: string): readonly unknown[] {
  const list = isJsonObject(body) ? body[name] : undefined;
  if (Array.isArray(list)) return list;
  throw new Problem('invalid_request', `The body must be an object with the list "${name}".`, {
    errors: [{ path: name, code: 'invalid_type', message: 'must be a list' }],
  });
}

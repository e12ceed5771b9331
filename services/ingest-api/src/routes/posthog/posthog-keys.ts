import { unauthorized } from '@sluice/shared/http/authentication';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { callKeyOf } from '../../http/call-keys.ts';

/**
 * Returns the API key of a request: that of its body, else `api_key` or `token` in the query, else that of its header
 * Authorization.
 *
 * @param inBody the key that the body has
 * @throws {Problem} `unauthorized` when there is none
 */
export function keyOf(request: FastifyRequest, inBody: string | undefined): string {
  if (inBody !== undefined) return inBody;
  const query = request.query as QueryParameters;
  const key = query['api_key']?.[0] ?? query['token']?.[0] ?? callKeyOf(request);
  if (key !== undefined) return key;
  throw unauthorized('An API key is needed: as api_key or token in the body or in the query.');
}

/** PostHog's clients know a wrong key by the code `invalid_api_key`. */
export function renameUnauthorized(app: FastifyInstance): void {
  // What this throws, the error handler of the server responds with.
  app.setErrorHandler((error) => {
    if (!(error instanceof Problem) || error.code !== 'unauthorized') throw error;
    throw new Problem('invalid_api_key', error.message, { headers: error.headers, cause: error });
  });
}

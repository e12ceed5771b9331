import { unauthorized } from '@sluice/shared/http/authentication';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyRequest } from 'fastify';

const AUTHORIZATION = /^(bearer|basic) +(\S+) *$/i;

/**
 * Returns the API key that a call has outside of its body: the token of `Authorization: Bearer`, the user name of
 * `Authorization: Basic`, else the parameter `writeKey`. The first one counts, also when it is wrong.
 *
 * @throws {Problem} `unauthorized` when there is an Authorization header of another kind
 */
export function callKeyOf(request: FastifyRequest): string | undefined {
  const { authorization } = request.headers;
  if (authorization === undefined) return (request.query as QueryParameters)['writeKey']?.[0];
  const [, scheme, token] = AUTHORIZATION.exec(authorization) ?? [];
  if (scheme === undefined || token === undefined) {
    throw unauthorized('The API key must be sent as "Authorization: Bearer <key>", or as the user name of Basic.');
  }
  return scheme.toLowerCase() === 'bearer' ? token : (partsOfBasic(token)[0] ?? '');
}

/** Returns every text that a client may have meant as an API key, in the query and in the header Authorization. */
export function keysOutsideOf({ headers, query }: FastifyRequest): readonly string[] {
  const [, , token = ''] = AUTHORIZATION.exec(headers.authorization ?? '') ?? [];
  const named = ['writeKey', 'api_key', 'token'].flatMap((name) => (query as QueryParameters)[name] ?? []);
  return [...named, token, ...partsOfBasic(token)].filter((text) => text !== '');
}

function partsOfBasic(token: string): readonly string[] {
  return Buffer.from(token, 'base64').toString().split(':');
}

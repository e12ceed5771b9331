import type { FastifyRequest } from 'fastify';
import type { ApiKey, KeyRing } from '../keys/key-ring.ts';
import type { Scope } from '../keys/keys-file.ts';
import { Problem, RETRY_UNAVAILABLE_SECONDS } from './problem.ts';

const BEARER = /^bearer +(\S+) *$/i;

/**
 * Returns the API key of a request.
 *
 * @throws {Problem} `unauthorized` without a known key, `missing_scope` when the key lacks the scope, `keys_unavailable`
 * while no valid keys file has been read
 */
export function authenticate(request: FastifyRequest, keys: KeyRing, scope: Scope): ApiKey {
  const header = request.headers.authorization;
  if (header === undefined) throw unauthorized('An API key is needed: send "Authorization: Bearer <key>".');
  const token = bearerOf(request);
  if (token === undefined) throw unauthorized('The API key must be sent as "Authorization: Bearer <key>".');
  return findKey(token, keys, scope);
}

/** Returns the text of a request's API key; `undefined` without one, or without its form. */
export function bearerOf({ headers }: FastifyRequest): string | undefined {
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/**
 * Returns the API key with this text.
 *
 * @throws {Problem} `unauthorized` when it is not known; `missing_scope` and `keys_unavailable` as {@link authenticate}
 */
export function findKey(token: string, keys: KeyRing, scope: Scope): ApiKey {
  // A producer drops events that get 401, so it must not get 401 while the keys are not known.
  if (!keys.loaded) {
    throw new Problem('keys_unavailable', 'API keys cannot be checked now; send the request again.', {
      retryAfter: RETRY_UNAVAILABLE_SECONDS,
    });
  }
  const key = keys.find(token);
  if (!key) throw unauthorized('The API key is not known.');
  if (!key.scopes.includes(scope)) throw new Problem('missing_scope', `The API key lacks the scope "${scope}".`);
  return key;
}

export function unauthorized(detail: string): Problem {
  return new Problem('unauthorized', detail, { headers: { 'www-authenticate': 'Bearer' } });
}

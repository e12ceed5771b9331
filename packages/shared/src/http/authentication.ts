import type { FastifyRequest } from 'fastify';
import type { ApiKey, KeyRing } from '../keys/key-ring.ts';
import type { Scope } from '../keys/keys-file.ts';
import { Problem } from './problem.ts';

const BEARER = /^bearer +(\S+) *$/i;

/**
 * The key that a request carries, if it has the scope.
 *
 * @throws {Problem} `unauthorized` without a known key, `missing_scope` when the key is not for this
 */
export function authenticate(request: FastifyRequest, keys: KeyRing, scope: Scope): ApiKey {
  const header = request.headers.authorization;
  if (header === undefined) throw unauthorized('An API key is needed: send "Authorization: Bearer <key>".');
  const token = BEARER.exec(header)?.[1];
  const key = token === undefined ? undefined : keys.find(token);
  if (!key) throw unauthorized('The API key is not known.');
  if (!key.scopes.includes(scope)) throw new Problem('missing_scope', `The API key lacks the scope "${scope}".`);
  return key;
}

function unauthorized(detail: string): Problem {
  return new Problem('unauthorized', detail, { headers: { 'www-authenticate': 'Bearer' } });
}

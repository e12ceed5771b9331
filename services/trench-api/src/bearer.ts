import { unauthorized } from '@sluice/shared/http/authentication';
import type { FastifyRequest } from 'fastify';

const BEARER = /^bearer +(\S+) *$/i;

/**
 * Returns the key of a request. Whether it is valid is for the service to say that gets it.
 *
 * @throws {Problem} `unauthorized` without one: query-api may serve a workspace without a key, and Trench never does
 */
export function keyOf(request: FastifyRequest): string {
  const key = BEARER.exec(request.headers.authorization ?? '')?.[1];
  if (key === undefined) throw unauthorized('An API key is needed: send "Authorization: Bearer <key>".');
  return key;
}

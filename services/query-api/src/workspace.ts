import { authenticate } from '@sluice/shared/http/authentication';
import type { RateLimiter } from '@sluice/shared/http/rate-limiter';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import type { FastifyRequest } from 'fastify';

/**
 * The one workspace that a request may read: its key's, or without any credential the one that is open to all.
 *
 * @throws {Problem} `unauthorized`, `missing_scope` or `rate_limited`; a wrong key is refused also where reading needs
 * none
 */
export function workspaceOf(
  request: FastifyRequest,
  keys: KeyRing,
  limiter: RateLimiter,
  anonymousWorkspace: string | undefined,
): string {
  if (request.headers.authorization === undefined && anonymousWorkspace !== undefined) return anonymousWorkspace;
  const key = authenticate(request, keys, 'query');
  limiter.admit(key);
  return key.workspace;
}

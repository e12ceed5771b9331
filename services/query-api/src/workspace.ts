import { authenticate } from '@sluice/shared/http/authentication';
import type { RateLimiter } from '@sluice/shared/http/rate-limiter';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import type { FastifyRequest } from 'fastify';

/**
 * Returns the one workspace that a request may read: that of its key, or the anonymous workspace if it has no key.
 *
 * @throws {Problem} `unauthorized`, `missing_scope`, `rate_limited` or `keys_unavailable`. A wrong key is refused even
 * where no key is needed
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

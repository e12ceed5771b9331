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

/** Whether a request that {@link workspaceOf} admitted would still be admitted: its key may have been revoked since. */
export function allowsWorkspace(
  request: FastifyRequest,
  keys: KeyRing,
  anonymousWorkspace: string | undefined,
): boolean {
  if (request.headers.authorization === undefined) return anonymousWorkspace !== undefined;
  try {
    return authenticate(request, keys, 'query').workspace === request.workspace;
  } catch {
    return false;
  }
}

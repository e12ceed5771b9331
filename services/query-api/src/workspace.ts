import { authenticate } from '@sluice/shared/http/authentication';
import type { RateLimiter } from '@sluice/shared/http/rate-limiter';
import type { ApiKey, KeyRing } from '@sluice/shared/keys/key-ring';
import type { Scope } from '@sluice/shared/keys/keys-file';
import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that a key must have. Default: `query`; nothing else can be done without a key. */
    scope?: Scope;
  }
}

/** Who reads: a key, and the one workspace that it may read. Requests without a key are one reader. */
export type Reader = Pick<ApiKey, 'hash' | 'workspace'>;

/**
 * Returns who sends a request: its key, or the reader of the anonymous workspace if it has no key.
 *
 * @throws {Problem} `unauthorized`, `missing_scope`, `rate_limited` or `keys_unavailable`. A wrong key is refused even
 * where no key is needed
 */
export function readerOf(
  request: FastifyRequest,
  keys: KeyRing,
  limiter: RateLimiter,
  anonymousWorkspace: string | undefined,
): Reader {
  const { scope = 'query' } = request.routeOptions.config;
  if (request.headers.authorization === undefined && anonymousWorkspace !== undefined && scope === 'query') {
    return { hash: '', workspace: anonymousWorkspace };
  }
  const key = authenticate(request, keys, scope);
  limiter.admit(key);
  return key;
}

/** Whether a request that {@link readerOf} admitted would still be admitted: its key may have been revoked since. */
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

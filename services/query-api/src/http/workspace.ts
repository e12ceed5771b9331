import { authenticate, bearerOf, unauthorized } from '@sluice/shared/http/authentication';
import { Problem } from '@sluice/shared/http/problem';
import type { RateLimiter } from '@sluice/shared/http/rate-limiter';
import type { ApiKey, KeyRing } from '@sluice/shared/keys/key-ring';
import type { Scope } from '@sluice/shared/keys/keys-file';
import type { TokenBucket } from '@sluice/shared/keys/token-bucket';
import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope that a key must have. Default: `query`; nothing else can be done without a key. */
    scope?: Scope;
    /** Whether the key of a link may read it, if it is of the dashboard in the path. Default: false. */
    forLinks?: boolean;
  }
}

/** Who reads: a key, and the one workspace that it may read. Requests without a key are one reader. */
export type Reader = Pick<ApiKey, 'hash' | 'workspace'>;

/** The key of a link: it reads one dashboard. */
export interface LinkKey {
  readonly workspace: string;
  readonly hash: string;
  readonly dashboard: string;
  readonly rateLimit: number;
  readonly bucket: TokenBucket;
}

/** Finds links by their keys. */
export interface KnownLinks {
  /** @throws {Problem} `store_unavailable` */
  find(key: string): Promise<LinkKey | undefined>;
}

/** Only a text of this form is looked up as the key of a link. Keys of a keys file begin with `sk_`. */
const LINK_KEY = /^vk_[\w-]{43}$/;

/** What decides about keys. */
export interface Gate {
  readonly keys: KeyRing;
  /** Undefined where there are no dashboards. */
  readonly linkKeys: KnownLinks | undefined;
  readonly limiter: RateLimiter;
  readonly anonymousWorkspace: string | undefined;
}

/**
 * Returns who sends a request: its key, or the reader of the anonymous workspace if it has no key and only reads.
 *
 * @throws {Problem} `unauthorized`, `missing_scope`, `rate_limited`, `keys_unavailable` or `store_unavailable`. A wrong key
 * is refused even where no key is needed
 */
export async function readerOf(request: FastifyRequest, gate: Gate): Promise<Reader> {
  const { keys, limiter, anonymousWorkspace } = gate;
  const { scope = 'query' } = request.routeOptions.config;
  const isReading = request.method === 'GET' || request.method === 'HEAD';
  const isAnonymous = request.headers.authorization === undefined && scope === 'query' && isReading;
  if (isAnonymous && anonymousWorkspace !== undefined) return { hash: '', workspace: anonymousWorkspace };
  const key = (await linkOf(request, gate)) ?? authenticate(request, keys, scope);
  limiter.admit(key);
  return key;
}

/**
 * Returns the key of a link if the request has one.
 *
 * @throws {Problem} `unauthorized` when it is not known; `missing_scope` for anything but its dashboard
 */
async function linkOf(request: FastifyRequest, { linkKeys }: Gate): Promise<LinkKey | undefined> {
  const text = bearerOf(request);
  if (text === undefined || !LINK_KEY.test(text)) return undefined;
  const key = await linkKeys?.find(text);
  if (!key) throw unauthorized('The API key is not known.');
  const { id } = request.params as { readonly id?: string };
  if (request.routeOptions.config.forLinks === true && id?.toLowerCase() === key.dashboard) return key;
  throw new Problem('missing_scope', 'The key of a link reads its dashboard, and nothing else.');
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

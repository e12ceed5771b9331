import type { Registry } from 'prom-client';
import type { ApiKey } from '../keys/key-ring.ts';
import { createRateLimitMetrics } from './metrics.ts';
import { Problem } from './problem.ts';

export interface RateLimiterOptions {
  /** The rate, per second, of keys that have none of their own; `undefined`: no limit. */
  readonly perSecondDefault: number | undefined;
  readonly registry: Registry;
}

/** Holds each API key to its rate, within this process. */
export interface RateLimiter {
  /**
   * Counts a request as one, before it is read.
   *
   * @throws {Problem} `rate_limited`
   */
  admit(key: ApiKey): void;
  /**
   * Counts an admitted request as `count` instead of one. When it throws, the request counts as none.
   *
   * @throws {Problem} `rate_limited`
   */
  recount(key: ApiKey, count: number): void;
  /** Undoes the counting of a request that counted as `count` and could not be served. */
  refund(key: ApiKey, count: number): void;
}

export function createRateLimiter({ perSecondDefault, registry }: RateLimiterOptions): RateLimiter {
  const { rateLimitedRequests } = createRateLimitMetrics(registry);

  function take({ bucket }: ApiKey, count: number, perSecond: number): void {
    const retryAfter = bucket.take(count, perSecond, performance.now());
    if (retryAfter === 0) return;
    rateLimitedRequests.inc();
    const detail = `The API key is over its limit of ${perSecond} a second; send the request again in ${retryAfter} s.`;
    throw new Problem('rate_limited', detail, { retryAfter });
  }

  return {
    admit(key) {
      const perSecond = key.rateLimit ?? perSecondDefault;
      if (perSecond !== undefined) take(key, 1, perSecond);
    },
    recount(key, count) {
      const perSecond = key.rateLimit ?? perSecondDefault;
      if (perSecond === undefined || count <= 1) return;
      key.bucket.giveBack(1);
      take(key, count, perSecond);
    },
    refund(key, count) {
      key.bucket.giveBack(count);
    },
  };
}

import type { Registry } from 'prom-client';
import type { ApiKey } from '../keys/key-ring.ts';
import { createRateLimitMetrics } from './metrics.ts';
import { Problem } from './problem.ts';

export interface RateLimiterOptions {
  /** The rate, per second, of keys that have none of their own; `undefined`: no limit. */
  readonly perSecondDefault: number | undefined;
  readonly registry: Registry;
}

/** What has a rate. */
export type Limited = Pick<ApiKey, 'rateLimit' | 'bucket'>;

/** Holds each API key to its rate, within this process. */
export class RateLimiter {
  readonly #perSecondDefault: number | undefined;
  readonly #metrics: ReturnType<typeof createRateLimitMetrics>;

  constructor({ perSecondDefault, registry }: RateLimiterOptions) {
    this.#perSecondDefault = perSecondDefault;
    this.#metrics = createRateLimitMetrics(registry);
  }

  /**
   * Counts a request as one, before it is read.
   *
   * @throws {Problem} `rate_limited`
   */
  admit(key: Limited): void {
    const perSecond = this.#rateOf(key);
    if (perSecond !== undefined) this.#take(key, 1, perSecond);
  }

  /**
   * Counts an admitted request as `count` instead of one. When it throws, the request counts as none.
   *
   * @throws {Problem} `rate_limited`
   */
  recount(key: Limited, count: number): void {
    const perSecond = this.#rateOf(key);
    if (perSecond === undefined || count <= 1) return;
    key.bucket.giveBack(1);
    this.#take(key, count, perSecond);
  }

  /** Returns the seconds until the key may send another request; 0: it may send one now. Counts nothing. */
  secondsLeft(key: Limited): number {
    const perSecond = this.#rateOf(key);
    return perSecond === undefined ? 0 : key.bucket.take(0, perSecond, performance.now());
  }

  /** Undoes the counting of a request that counted as `count` and could not be served. */
  refund(key: Limited, count: number): void {
    key.bucket.giveBack(count);
  }

  #rateOf({ rateLimit }: Limited): number | undefined {
    return rateLimit ?? this.#perSecondDefault;
  }

  #take({ bucket }: Limited, count: number, perSecond: number): void {
    const retryAfter = bucket.take(count, perSecond, performance.now());
    if (retryAfter === 0) return;
    this.#metrics.rateLimitedRequests.inc();
    const detail = `The API key is over its limit of ${perSecond} a second; send the request again in ${retryAfter} s.`;
    throw new Problem('rate_limited', detail, { retryAfter });
  }
}

import { Counter, type Registry } from 'prom-client';
import type { ApiKey } from '../keys/key-ring.ts';
import { Problem } from './problem.ts';

export interface RateLimiterOptions {
  /** What a key may do in a second whose entry does not say; `undefined`: as much as it likes. */
  readonly perSecondDefault: number | undefined;
  readonly registry: Registry;
}

/** Holds keys to their rates, each for itself and as far as this process goes. What counts throws `rate_limited`. */
export interface RateLimiter {
  /** Counts a request, before anything of it is read. */
  admit(key: ApiKey): void;
  /** Counts an admitted request as `count`; as none when it is refused. */
  recount(key: ApiKey, count: number): void;
  /** Counts a request as none that was counted as `count` and could not be served. */
  refund(key: ApiKey, count: number): void;
}

export function createRateLimiter({ perSecondDefault, registry }: RateLimiterOptions): RateLimiter {
  const refused = new Counter({
    name: 'sluice_rate_limited_total',
    help: 'Requests answered 429, their key being over its rate.',
    registers: [registry],
  });

  function take({ bucket }: ApiKey, count: number, perSecond: number): void {
    const retryAfter = bucket.take(count, perSecond, performance.now());
    if (retryAfter === 0) return;
    refused.inc();
    const detail = `The API key is over its limit of ${perSecond} a second; try again in ${retryAfter} s.`;
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

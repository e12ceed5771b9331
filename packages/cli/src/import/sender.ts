import { backoff, sleep } from '@sluice/shared/base/retry';
import { Pool } from 'undici';
import { describeFailure, describeResponse } from '../transfer/describe-response.ts';
import type { ImportRequest } from './format.ts';

/** The outcome of a request: the response, or why the service refused it. */
export type SendOutcome =
  | { readonly kind: 'accepted'; readonly response: string }
  | { readonly kind: 'refused'; readonly reason: string };

/** A response after which every other request would fail too: the key is refused, or the address is not Sluice. */
export class FatalResponse extends Error {
  override readonly name = 'FatalResponse';
}

/** No request was accepted or refused for too long. */
export class GivenUp extends Error {
  override readonly name = 'GivenUp';
}

export interface SenderOptions {
  readonly url: URL;
  readonly key: string;
  readonly connectionsMax: number;
  /** The longest time without any accepted or refused request, in milliseconds, not counting waits for a rate limit. */
  readonly giveUpAfterMs: number;
  /** Called before each retry. */
  readonly onRetry?: (reason: string) => void;
}

const RETRY_MS_FIRST = 250;
const RETRY_MS_MAX = 5_000;

/** The longest Retry-After that is followed. */
const RETRY_AFTER_MS_MAX = 3_600_000;

/** The longest time for one response, in milliseconds; longer than the service's own time limit. */
const RESPONSE_TIMEOUT_MS = 30_000;

/**
 * Sends requests over connections that stay open. It uses undici, which needs a fifth of fetch's CPU time.
 *
 * It is not the client of producers: that has one request under way and drops events when its queue is full. An import
 * has many under way, keeps the order of changes, knows the line of each refusal, and drops nothing.
 */
export class Sender {
  readonly #options: SenderOptions;
  readonly #pool: Pool;
  /** The last time that a request was accepted or refused; later than now while a rate limit is waited for. */
  #progressAt = performance.now();

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#pool = new Pool(options.url.origin, {
      connections: options.connectionsMax,
      headersTimeout: RESPONSE_TIMEOUT_MS,
      bodyTimeout: RESPONSE_TIMEOUT_MS,
    });
  }

  /**
   * Sends and retries until the service accepts or refuses the request. The signal ends the retries.
   *
   * @throws {FatalResponse | GivenUp}
   */
  async send(request: ImportRequest, signal: AbortSignal): Promise<SendOutcome> {
    const { giveUpAfterMs, onRetry } = this.#options;
    for (const delayMs of backoff(RETRY_MS_FIRST, RETRY_MS_MAX)) {
      const outcome = await this.#tryOnce(request);
      if (outcome.kind !== 'retry') {
        this.#progressAt = performance.now();
        return outcome;
      }
      onRetry?.(outcome.reason);
      if (outcome.limited) this.#progressAt = Math.max(this.#progressAt, performance.now() + outcome.afterMs);
      const leftMs = this.#progressAt + giveUpAfterMs - performance.now();
      if (signal.aborted) throw new GivenUp('interrupted');
      if (leftMs <= 0) throw new GivenUp(`${outcome.reason}, for ${Math.round(giveUpAfterMs / 1_000)} seconds`);
      await sleep(Math.min(Math.max(delayMs, outcome.afterMs), leftMs), signal);
    }
    throw new Error('unreachable: the delays have no end');
  }

  /** @throws {FatalResponse} */
  async #tryOnce(request: ImportRequest): Promise<SendOutcome | Retry> {
    return await this.#post(request).then(outcomeOf, (error) => {
      return { kind: 'retry', reason: describeFailure(error), afterMs: 0, limited: false };
    });
  }

  /** @throws undici's errors */
  async #post({ path, body, idempotencyKey }: ImportRequest): Promise<Reply> {
    const { url, key } = this.#options;
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    };
    const base = url.pathname.replace(/\/$/, '');
    const response = await this.#pool.request({ method: 'POST', path: base + path, headers, body });
    const text = await response.body.text();
    return { status: response.statusCode, text, retryAfter: Number(response.headers['retry-after'] ?? 0) };
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
  /** In seconds; 0 or not a number when the service names none. */
  readonly retryAfter: number;
}

interface Retry {
  readonly kind: 'retry';
  readonly reason: string;
  readonly afterMs: number;
  /** Whether the key is over its rate limit. Such a wait does not count towards giving up. */
  readonly limited: boolean;
}

/**
 * What a response means for the request.
 *
 * @throws {FatalResponse}
 */
function outcomeOf({ status, text, retryAfter }: Reply): SendOutcome | Retry {
  if (status >= 200 && status < 300) return { kind: 'accepted', response: text };
  const reason = describeResponse(status, text);
  if (status === 401 || status === 403) throw new FatalResponse(`the service refuses the key (${reason})`);
  if (status === 404 || status === 405 || status < 400)
    throw new FatalResponse(`the address is not Sluice (${reason})`);
  if (status < 500 && status !== 408 && status !== 429) return { kind: 'refused', reason };
  const afterMs = retryAfter > 0 ? Math.min(retryAfter * 1_000, RETRY_AFTER_MS_MAX) : 0;
  return { kind: 'retry', reason, afterMs, limited: status === 429 && afterMs > 0 };
}

import type { Logger } from '../log.ts';
import type { HttpMetrics } from './metrics.ts';
import type { Problem, ProblemCode } from './problem.ts';

/** The time in which a 503 of one code is logged once, in milliseconds. Under load there are thousands a second. */
const LOG_INTERVAL_MS = 5_000;

/** Counts the requests that are refused, and logs those for which the service is to blame. */
export class Refusals {
  readonly #refusedRequests: HttpMetrics['refusedRequests'];
  /** `at` is on the clock of `performance`, which nobody sets. */
  readonly #logged = new Map<ProblemCode, { at: number; suppressed: number }>();

  constructor({ refusedRequests }: Pick<HttpMetrics, 'refusedRequests'>) {
    this.#refusedRequests = refusedRequests;
  }

  /** `log` returns the request's logger, `error` is what was thrown. */
  record(problem: Problem, error: Error, log: () => Logger): void {
    this.#refusedRequests.inc({ code: problem.code });
    if (problem.status === 503) this.#logUnavailable(problem, log);
    else if (problem.status >= 500) log().error({ err: error, code: problem.code }, 'request failed');
  }

  #logUnavailable({ code, message, cause }: Problem, log: () => Logger): void {
    const last = this.#logged.get(code);
    if (last && performance.now() - last.at < LOG_INTERVAL_MS) {
      last.suppressed += 1;
      return;
    }
    this.#logged.set(code, { at: performance.now(), suppressed: 0 });
    const reason = cause instanceof Error ? cause.message : message;
    log().warn({ code, reason, suppressed: last?.suppressed ?? 0 }, 'requests get 503');
  }
}

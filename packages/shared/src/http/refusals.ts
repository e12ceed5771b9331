import { Counter, type Registry } from 'prom-client';
import type { Logger } from '../log.ts';
import type { Problem, ProblemCode } from './problem.ts';

/** A 503 of one code is logged once in this time, in milliseconds: under load there are thousands a second. */
const LOG_INTERVAL_MS = 5_000;

/** Counts the requests that are refused, and logs those that are the service's own trouble. */
export interface Refusals {
  /** `log` is the request's logger, `error` what was thrown. */
  record(problem: Problem, error: Error, log: Logger): void;
}

export function createRefusals(registry: Registry, now: () => number = Date.now): Refusals {
  const refused = new Counter({
    name: 'sluice_requests_refused_total',
    help: 'Requests that were answered with an error, by its code.',
    labelNames: ['code'],
    registers: [registry],
  });
  const logged = new Map<ProblemCode, { at: number; suppressed: number }>();

  function logUnavailable({ code, message, cause }: Problem, log: Logger): void {
    const last = logged.get(code);
    if (last && now() - last.at < LOG_INTERVAL_MS) {
      last.suppressed += 1;
      return;
    }
    logged.set(code, { at: now(), suppressed: 0 });
    const reason = cause instanceof Error ? cause.message : message;
    log.warn({ code, reason, suppressed: last?.suppressed ?? 0 }, 'requests are answered 503');
  }

  return {
    record(problem, error, log) {
      refused.inc({ code: problem.code });
      if (problem.status === 503) logUnavailable(problem, log);
      else if (problem.status >= 500) log.error({ err: error, code: problem.code }, 'request failed');
    },
  };
}

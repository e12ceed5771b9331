import type { Logger } from '@sluice/shared/base/log';
import { Problem } from '@sluice/shared/http/problem';
import type { LogTime } from '../stream/stream.ts';
import type { AlertMetrics, TroubleKind } from './alert-metrics.ts';

const MINUTE_MS = 60_000;

/** Why something cannot be judged now: the pipeline is late, or a number cannot be read. */
export interface Trouble {
  readonly kind: TroubleKind;
  readonly reason: string;
}

export function lateness({ throughMs, nowMs }: LogTime): Trouble {
  if (throughMs === undefined) return { kind: 'late', reason: 'No writer has said lately how far events are stored.' };
  return { kind: 'late', reason: `Events are stored ${Math.floor((nowMs - throughMs) / MINUTE_MS)} minutes late.` };
}

export interface FailureOptions {
  readonly metrics: AlertMetrics;
  readonly logger: Logger;
}

/** Notes that a number could not be read, which says nothing of the number. */
export function failure(webhook: string, error: unknown, { metrics, logger }: FailureOptions): Trouble {
  metrics.evaluations.inc({ outcome: 'failed' });
  if (!(error instanceof Problem)) {
    logger.error({ webhook, reason: (error as Error).message }, 'cannot read the numbers of an alert or a digest');
  }
  return { kind: 'failed', reason: reasonOf(error) };
}

/** Who reads an alert may read every problem of a report, but no error of ClickHouse. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Problem)) return 'The number could not be read; the log of query-api says why.';
  const errors = error.errors?.map(({ path, message }) => `${path} ${message}`) ?? [];
  return [error.message, ...errors].join(' ').slice(0, 500);
}

import { parseTimestamp } from '@sluice/shared/text/timestamp';
import { TIMESTAMP_AHEAD_MS_MAX, TIMESTAMP_MS_MIN } from '@sluice/submissions/reading/submission-limits';
import type { LineToSend } from './format.ts';

/** What tells the time of an archived call, in milliseconds since 1970. */
export interface ArchivedTimes {
  /** The best first. */
  readonly happened: readonly (number | undefined)[];
  /** When the pipeline that archived the call received it. */
  readonly received: number | undefined;
}

/**
 * Returns when a call happened, in milliseconds since 1970: the first time that Sluice would have taken if it had
 * received the call itself, else the time of receipt. It depends on the line alone, so that the same line always becomes
 * the same event. `undefined`: none of the times can be right.
 */
export function timeOf({ happened, received }: ArchivedTimes): number | undefined {
  const nowMs = Date.now();
  const isUsable = (ms: number | undefined, clockMs: number) =>
    ms !== undefined && ms >= TIMESTAMP_MS_MIN && ms <= clockMs + TIMESTAMP_AHEAD_MS_MAX;
  const receivedMs = isUsable(received, nowMs) ? received : undefined;
  return happened.find((ms) => isUsable(ms, receivedMs ?? nowMs)) ?? receivedMs;
}

/** Milliseconds since 1970; `undefined` for what is no timestamp. */
export function msOf(value: unknown): number | undefined {
  return typeof value === 'string' ? parseTimestamp(value)?.ms : undefined;
}

/** An entity that a call changes. */
export interface ChangedEntity {
  readonly kind: 'user' | 'organization';
  readonly id: unknown;
}

/** Where calls are sent. */
const BATCH_PATH = '/v1/batch';

/** Creates the line for a call, which has a messageId and a timestamp. */
export function callLine(
  number: number,
  body: Buffer,
  entity: ChangedEntity | undefined,
  path = BATCH_PATH,
): LineToSend {
  return {
    kind: 'line',
    number,
    path,
    body,
    events: 1,
    orderKey: entity && JSON.stringify([entity.kind, String(entity.id)]),
    idempotencyKey: undefined,
  };
}

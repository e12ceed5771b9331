import { parseTimestamp } from '@sluice/shared/text/timestamp';
import { ObjectText } from '../reading/json-object.ts';
import { TIMESTAMP_AHEAD_MS_MAX, TIMESTAMP_MS_MIN, uuidV7TimeMs } from '../reading/submission-limits.ts';
import { InvalidCall } from './call.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** `@segment/analytics-node` writes the time of the call into its messageIds. */
const NODE_MESSAGE_ID = /^node-next-(\d{13})-/;

/** Seconds since 1970, with a fraction or not, or milliseconds, as text. */
const NUMBER = /^\d{10}(\.\d+)?$|^\d{13}$/;

/** A smaller number is in seconds since 1970, a larger one in milliseconds: 1973, or the year 5138. */
const MILLISECONDS_MIN = 100_000_000_000;

/** A clock that is wrong is corrected by whole minutes, so that a request that is sent again soon has the same times. */
const CORRECTION_STEP_MS = 60_000;

/** No clock is farther from 1970: it is the last time that JavaScript has. Numbers beyond it are not exact to a day. */
const CLOCK_MS_MAX = 8_640_000_000_000_000;

/** How much is kept of a time that cannot be read, in UTF-16 code units. */
const KEPT_LENGTH_MAX = 512;

/** Where the times of a call come from besides its own members. */
export interface CallClock {
  /** When the server received the request, in milliseconds since 1970. */
  readonly receivedMs: number;
  /** The server's clock, in milliseconds since 1970. It is later than the receipt when a call is replayed. */
  readonly nowMs: number;
  /** When the client sent the request by its own clock, as it says it; `undefined` when it does not. */
  readonly sentAt: unknown;
}

export interface CallTime {
  /** In milliseconds since 1970; `undefined`: the time of receipt. */
  readonly ms: number | undefined;
  /** The time that came, where another one counts. */
  readonly sent: string | undefined;
}

/**
 * Returns the time of a call: its timestamp, else its originalTimestamp, else the time in its messageId. A time that cannot
 * be read, or is before 2000, counts as absent. One that is more than a day ahead is rejected: a call must not become two
 * events when it is sent again once that time has come. Only where the client says by `sentAt` that its clock is just as
 * wrong, its times are corrected by that (decision 0078).
 *
 * @throws {InvalidCall}
 */
export function timeOf(
  value: JsonObject,
  messageId: string | undefined,
  uuid: string | undefined,
  clock: CallClock,
): CallTime {
  let sent: string | undefined;
  for (const name of ['timestamp', 'originalTimestamp']) {
    const given = value[name] ?? '';
    if (given === '') continue;
    const ms = msOf(given);
    const time = ms === undefined ? undefined : settle(name, ms, clock);
    if (time === undefined || time === 'receipt' || time !== ms) sent ??= textOf(given);
    if (time === 'receipt') return { ms: undefined, sent };
    if (time !== undefined) return { ms: time, sent };
  }
  const written = NODE_MESSAGE_ID.exec(messageId ?? '')?.[1];
  const ms = written === undefined ? uuidV7TimeMs(uuid) : Number(written);
  const name = messageId === undefined ? 'the time in uuid' : 'the time in messageId';
  const time = ms === undefined ? undefined : settle(name, ms, clock);
  return { ms: time === 'receipt' ? undefined : time, sent };
}

/** Returns the milliseconds since 1970 of a time: ISO 8601, or a number of seconds or milliseconds since then. */
export function msOf(given: unknown): number | undefined {
  if (typeof given === 'string' && !NUMBER.test(given)) return parseTimestamp(given)?.ms;
  const number = JSON.isRawJSON(given) ? Number(given.rawJSON) : Number(given);
  if (typeof given === 'object' && !JSON.isRawJSON(given)) return undefined;
  if (typeof given === 'boolean') return undefined;
  const ms = Math.floor(number < MILLISECONDS_MIN ? number * 1_000 : number);
  return Number.isFinite(ms) ? ms : undefined;
}

/** Returns a time as it counts; `undefined` when it cannot be right. @throws {InvalidCall} when it is ahead */
function settle(name: string, ms: number, clock: CallClock): number | 'receipt' | undefined {
  if (ms >= TIMESTAMP_MS_MIN && ms <= clock.nowMs + TIMESTAMP_AHEAD_MS_MAX) return ms;
  const corrected = correct(ms, clock);
  if (corrected === undefined && ms >= TIMESTAMP_MS_MIN) {
    throw new InvalidCall('time', `${name} must be at most one day from now.`);
  }
  return corrected;
}

/**
 * Returns a time by the server's clock where `sentAt` cannot be right either: no delay on the way explains a clock that is
 * ahead, or that stands before 2000. `undefined` where nothing says how wrong the clock is.
 */
function correct(ms: number, { receivedMs, sentAt }: CallClock): number | 'receipt' | undefined {
  const sentMs = msOf(sentAt);
  if (sentMs === undefined || Math.abs(sentMs) > CLOCK_MS_MAX) return undefined;
  if (sentMs >= TIMESTAMP_MS_MIN && sentMs <= receivedMs + TIMESTAMP_AHEAD_MS_MAX) return undefined;
  const age = sentMs - ms;
  // It was not written by the clock that wrote `sentAt`.
  if (age <= -CORRECTION_STEP_MS) return undefined;
  // Stamped on receipt, it is recognised when it is sent again, whatever `sentAt` is then.
  if (age < CORRECTION_STEP_MS) return 'receipt';
  const time = ms + Math.round((receivedMs - sentMs) / CORRECTION_STEP_MS) * CORRECTION_STEP_MS;
  return time < TIMESTAMP_MS_MIN ? 'receipt' : time;
}

function textOf(given: unknown): string {
  const text = typeof given === 'string' ? given : given instanceof ObjectText ? given.json : JSON.stringify(given);
  return text.slice(0, KEPT_LENGTH_MAX).toWellFormed();
}

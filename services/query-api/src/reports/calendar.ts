import { z } from 'zod';
import { BUCKETS_MAX } from '../http/http.ts';
import { notEmpty } from '../records/records.ts';

// The calendar of a time zone as instants. In a time zone the offset from UTC is constant between two transitions, so
// the bounds of local intervals are plain arithmetic there; only transitions are looked up.

/** The intervals of a calendar. */
export const CALENDAR_INTERVALS = ['minute', 'hour', 'day', 'week', 'month'] as const;

export type CalendarInterval = (typeof CALENDAR_INTERVALS)[number];

/** The days that a week can begin on. */
const WEEK_STARTS = ['monday', 'saturday', 'sunday'] as const;

type WeekStart = (typeof WEEK_STARTS)[number];

/** An interval, and for weeks the day that they begin on. */
export type CalendarUnit = Exclude<CalendarInterval, 'week'> | `week from ${WeekStart}`;

export function calendarUnit(interval: CalendarInterval, weekStart: WeekStart = 'monday'): CalendarUnit {
  return interval === 'week' ? `week from ${weekStart}` : interval;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

interface Unit {
  /** Numbers the intervals of a local time, in milliseconds since 1970 as its clocks show it. */
  numberOf(localMs: number): number;
  /** When an interval begins, in local milliseconds. */
  startOf(number: number): number;
  /** At least as long as the longest interval, in milliseconds: a date has at most 48 hours in one zone. */
  readonly lengthMsMax: number;
  /** Whether a transition always begins another interval, so that a repeated hour is two. */
  readonly splitsAtTransitions: boolean;
}

const UNITS: Readonly<Record<CalendarUnit, Unit>> = {
  minute: { ...evenUnit(MINUTE_MS), lengthMsMax: MINUTE_MS, splitsAtTransitions: true },
  hour: { ...evenUnit(HOUR_MS), lengthMsMax: HOUR_MS, splitsAtTransitions: true },
  day: { ...evenUnit(DAY_MS), lengthMsMax: 2 * DAY_MS, splitsAtTransitions: false },
  // 1970-01-01 was a Thursday.
  'week from saturday': weekFrom(2 * DAY_MS),
  'week from sunday': weekFrom(3 * DAY_MS),
  'week from monday': weekFrom(4 * DAY_MS),
  month: {
    numberOf(localMs) {
      const local = new Date(localMs);
      return local.getUTCFullYear() * 12 + local.getUTCMonth();
    },
    startOf: (number) => Date.UTC(Math.floor(number / 12), number % 12),
    lengthMsMax: 32 * DAY_MS,
    splitsAtTransitions: false,
  },
};

function weekFrom(firstMs: number): Unit {
  return { ...evenUnit(7 * DAY_MS, firstMs), lengthMsMax: 8 * DAY_MS, splitsAtTransitions: false };
}

function evenUnit(lengthMs: number, originMs = 0): Pick<Unit, 'numberOf' | 'startOf'> {
  return {
    numberOf: (localMs) => Math.floor((localMs - originMs) / lengthMs),
    startOf: (number) => number * lengthMs + originMs,
  };
}

/**
 * Returns when the local intervals begin that have a part in a time range, in milliseconds since 1970 and ascending.
 * The first can lie before `startMs`. An interval ends where the next one begins:
 *
 * - A day begins when the clocks first show its date: in Havana at 01:00 when they skip midnight, and at the first of
 *   two midnights. A date that never was has no interval. Weeks and months begin with their first day.
 * - Where the clocks change, another minute and another hour begin: the two local hours of a night in autumn are told
 *   apart by their offset from UTC, and in Lord Howe, where the clocks change by half an hour, one of them is short.
 *
 * It returns at most {@link BUCKETS_MAX} + 1 of them, so a longer list says that there are too many.
 *
 * @param timeZone a name that {@link timeZoneParameter} returned
 * @param startMs the first millisecond of the range
 * @param endMs the last millisecond of the range
 */
export function bucketStarts(unit: CalendarUnit, timeZone: string, startMs: number, endMs: number): number[] {
  const starts: number[] = [];
  for (const start of startsFrom(unit, timeZone, startMs - UNITS[unit].lengthMsMax)) {
    if (start > endMs || starts.length > BUCKETS_MAX) break;
    if (start <= startMs) starts.length = 0;
    starts.push(start);
  }
  return starts;
}

/** Returns when each of the `count` local intervals before an interval begins; `startMs` is where that one begins. */
export function bucketStartsBefore(unit: CalendarUnit, timeZone: string, startMs: number, count: number): number[] {
  const starts: number[] = [];
  for (const start of startsFrom(unit, timeZone, startMs - (count + 1) * UNITS[unit].lengthMsMax)) {
    if (start >= startMs) break;
    starts.push(start);
  }
  return count === 0 ? [] : starts.slice(-count);
}

/** The starts of all intervals that begin after an instant. */
function* startsFrom(unit: CalendarUnit, timeZone: string, afterMs: number): Generator<number, void, undefined> {
  const { numberOf, startOf, splitsAtTransitions } = UNITS[unit];
  let here = Temporal.Instant.fromEpochMilliseconds(afterMs).toZonedDateTimeISO(timeZone);
  let last = numberOf(afterMs + offsetMsOf(here));
  for (;;) {
    const offsetMs = offsetMsOf(here);
    const next = here.getTimeZoneTransition('next');
    const endMs = next?.epochMilliseconds ?? Number.POSITIVE_INFINITY;
    for (let number = last + 1; startOf(number) - offsetMs < endMs; number += 1) {
      yield startOf(number) - offsetMs;
      last = number;
    }
    if (!next) return;
    const afterwards = numberOf(endMs + offsetMsOf(next));
    if (splitsAtTransitions || afterwards > last) {
      yield endMs;
      last = afterwards;
    }
    here = next;
  }
}

function offsetMsOf(time: Temporal.ZonedDateTime): number {
  return time.offsetNanoseconds / 1_000_000;
}

/** Names of IANA begin with a letter. Temporal also knows offsets as zones, `+01:00`. */
const NAME = /^[A-Za-z]/;

/** The name of a time zone in any case; read as IANA writes it. */
export const timeZoneParameter = notEmpty
  .transform((name, context) => {
    try {
      if (NAME.test(name)) return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId;
    } catch {
      // An unknown name.
    }
    context.addIssue({ code: 'custom', message: 'must be the name of an IANA time zone, such as Europe/Berlin' });
    return z.NEVER;
  })
  .meta({ default: 'UTC', description: 'The IANA time zone of the intervals.' });

export const weekStartParameter = z
  .enum(WEEK_STARTS, `must be one of ${WEEK_STARTS.join(', ')}`)
  .meta({ default: 'monday', description: 'The day that weeks begin on, for `interval=week`.' });

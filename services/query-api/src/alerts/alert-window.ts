/** The time whose number an alert takes: so many whole minutes, hours or days. */
export interface AlertWindow {
  readonly count: number;
  readonly unit: keyof typeof COUNTS_MAX;
}

/** A time, with its first millisecond and the one after its last. */
export interface TimeSpan {
  readonly startMs: number;
  readonly endMs: number;
}

const COUNTS_MAX = { m: 120, h: 72, d: 90 } as const;

const LENGTHS_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** What a window may be. */
export const WINDOW_RANGE = `1m to ${COUNTS_MAX.m}m, 1h to ${COUNTS_MAX.h}h or 1d to ${COUNTS_MAX.d}d`;

/** Returns the window that a text says, if it is one. */
export function windowOf(text: string): AlertWindow | undefined {
  const [, digits, unit] = /^([1-9]\d{0,2})([mhd])$/.exec(text) ?? [];
  const window = { count: Number(digits), unit: unit as AlertWindow['unit'] };
  return digits !== undefined && window.count <= COUNTS_MAX[window.unit] ? window : undefined;
}

/** How long a window is, in milliseconds, but for changes of the clocks. */
export function lengthOf({ count, unit }: AlertWindow): number {
  return count * LENGTHS_MS[unit];
}

/** Returns the last whole window before a time, and the window before that, which ends where it begins. */
export function lastWindows(
  window: AlertWindow,
  timeZone: string,
  beforeMs: number,
): { readonly last: TimeSpan; readonly before: TimeSpan } {
  const now = Temporal.Instant.fromEpochMilliseconds(beforeMs).toZonedDateTimeISO(timeZone);
  const ends = [0, 1, 2].map((windows) => startOf(window, now, windows * window.count).epochMilliseconds);
  const [endMs = 0, startMs = 0, beginMs = 0] = ends;
  return { last: { startMs, endMs }, before: { startMs: beginMs, endMs: startMs } };
}

/** Returns when the unit of a time begins, or the one so many units earlier. A day may have 23 hours, or 25. */
function startOf({ unit }: AlertWindow, now: Temporal.ZonedDateTime, earlier: number): Temporal.ZonedDateTime {
  if (unit === 'd') return now.toPlainDate().subtract({ days: earlier }).toZonedDateTime(now.timeZoneId);
  const smallestUnit = unit === 'h' ? 'hour' : 'minute';
  return now
    .round({ smallestUnit, roundingMode: 'floor' })
    .subtract(unit === 'h' ? { hours: earlier } : { minutes: earlier });
}

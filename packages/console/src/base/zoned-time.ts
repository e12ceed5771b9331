const DAY_MS = 86_400_000;

/** A date of a calendar; the month from 1. */
export interface CalendarDate {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

const clocks = new Map<string, Intl.DateTimeFormat>();

/** The clock of a time zone. To make one costs more than to read it. */
function clockOf(timeZone: string): Intl.DateTimeFormat {
  const known = clocks.get(timeZone);
  if (known) return known;
  const clock = new Intl.DateTimeFormat('en', {
    ...{ timeZone, calendar: 'gregory', numberingSystem: 'latn', hourCycle: 'h23', era: 'short' },
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  clocks.set(timeZone, clock);
  return clock;
}

/** What the clocks of a time zone show at a time, in milliseconds since 1970 as if they showed UTC. */
function shownMs(ms: number, timeZone: string): number {
  const parts = Object.fromEntries(
    clockOf(timeZone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  const number = (name: string) => Number(parts[name]);
  const year = parts['era'] === 'BC' ? 1 - number('year') : number('year');
  const shown = new Date(0);
  shown.setUTCFullYear(year, number('month') - 1, number('day'));
  shown.setUTCHours(number('hour'), number('minute'), number('second'), ((ms % 1_000) + 1_000) % 1_000);
  return shown.getTime();
}

/** Returns the date that the clocks of a time zone show. */
export function dateIn(timeZone: string, ms: number): CalendarDate {
  const shown = new Date(shownMs(ms, timeZone));
  return { year: shown.getUTCFullYear(), month: shown.getUTCMonth() + 1, day: shown.getUTCDate() };
}

/**
 * Returns when the clocks of a time zone first show a date, in milliseconds since 1970. Months and days may be beyond their
 * ends: day 32 of May is the 1st of June.
 */
export function startOfDate(timeZone: string, { year, month, day }: CalendarDate): number {
  const midnight = new Date(0);
  midnight.setUTCFullYear(year, month - 1, day);
  const wanted = midnight.getTime();
  // Where the clocks change that night, the offset of the day before or that of the day after may be the right one.
  const candidates = [-DAY_MS, DAY_MS]
    .map((distance) => wanted - (shownMs(wanted + distance, timeZone) - (wanted + distance)))
    .toSorted((one, other) => one - other);
  const isReached = (ms: number) => shownMs(ms, timeZone) >= wanted;
  return candidates.find(isReached) ?? (candidates.at(-1) as number);
}

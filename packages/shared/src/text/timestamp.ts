/** A date, and a time of day with or without seconds, fraction and zone; see {@link parseTimestamp}. */
const ISO_8601 =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2})?)?)?$/;

/** What JavaScript writes, and with it most producers: parsed in half the time. */
const ISO_STRING = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const DAY_MS = 86_400_000;

export interface ParsedTimestamp {
  /** Milliseconds since 1970-01-01 UTC, rounded down. */
  readonly ms: number;
  /** The text has a date and no time of day: `ms` is the first millisecond of that day in UTC. */
  readonly dateOnly: boolean;
}

/**
 * Parses an ISO 8601 timestamp (extended format). Without a zone it is UTC. Returns `undefined` for anything else, such
 * as a day that the calendar does not have.
 */
export function parseTimestamp(text: string): ParsedTimestamp | undefined {
  if (ISO_STRING.test(text)) {
    const ms = Date.parse(text);
    // Date.parse takes a day that the month does not have for one of the next month, and 24:00 for the next day.
    if (new Date(ms).getUTCDate() === Number(text.slice(8, 10))) return { ms, dateOnly: false };
  }
  const match = ISO_8601.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', , sign, zoneHour, zoneMinute] =
    match;
  if (hour > '23' || minute > '59' || second > '59') return undefined;
  if ((zoneHour ?? '00') > '23' || (zoneMinute ?? '00') > '59') return undefined;
  const midnight = Date.parse(`${year}-${month}-${day}T00:00:00.000Z`);
  if (Number.isNaN(midnight) || new Date(midnight).getUTCDate() !== Number(day)) return undefined;
  const timeMs =
    (Number(hour) * 3_600 + Number(minute) * 60 + Number(second)) * 1_000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
  const zoneMs = (Number(zoneHour ?? 0) * 60 + Number(zoneMinute ?? 0)) * 60_000 * (sign === '-' ? -1 : 1);
  return { ms: midnight + timeMs - zoneMs, dateOnly: match[4] === undefined };
}

/** Returns the last millisecond of the day that begins at `ms`. */
export function endOfDay(ms: number): number {
  return ms + DAY_MS - 1;
}

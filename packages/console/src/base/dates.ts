import { without } from './route.ts';
import { type Calendar, zoneOf } from './settings.ts';
import { type CalendarDate, dateIn, startOfDate } from './zoned-time.ts';

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;

/**
 * Returns parameters as query-api takes them. A date alone in `startDate` or `endDate` is a day of the time zone, as
 * charts draw it; for query-api it would be one of UTC. Anything else stays as it is.
 */
export function withLocalDays(params: URLSearchParams, timeZone: string): URLSearchParams {
  const query = without(params);
  const [from, to] = ['startDate', 'endDate'].map((name) => localDay(params.get(name), timeZone));
  if (from) query.set('startDate', new Date(from.start).toISOString());
  if (to) query.set('endDate', new Date(to.next - 1).toISOString());
  return query;
}

/** Returns when a day of a time zone and the day after it begin; `undefined` for a text that is no date. */
function localDay(
  text: string | null,
  timeZone: string,
): { readonly start: number; readonly next: number } | undefined {
  const [, year, month, day] = DAY.exec(text ?? '')?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return undefined;
  const date = new Date(`${text}T00:00:00Z`);
  // A day that the calendar does not have is query-api's to refuse.
  if (Number.isNaN(date.getTime()) || date.getUTCDate() !== day) return undefined;
  return {
    start: startOfDate(timeZone, { year, month, day }),
    next: startOfDate(timeZone, { year, month, day: day + 1 }),
  };
}

/** Returns a day as an address has it. */
export function dayText({ year, month, day }: CalendarDate): string {
  return new Date(Date.UTC(year, month - 1, day)).toISOString().slice(0, 10);
}

interface Range {
  readonly label: string;
  readonly hours?: number;
  readonly days?: number;
  readonly months?: number;
}

/** The ranges that end now, by their names in an address. */
export const RANGES: Readonly<Record<string, Range>> = {
  '1h': { label: 'Last hour', hours: 1 },
  '24h': { label: 'Last 24 hours', hours: 24 },
  '7d': { label: 'Last 7 days', days: 7 },
  '30d': { label: 'Last 30 days', days: 30 },
  '90d': { label: 'Last 90 days', days: 90 },
  '12m': { label: 'Last 12 months', months: 12 },
  '60m': { label: 'Last 5 years', months: 60 },
};

export const RANGE_DEFAULT = '30d';

const HOUR_MS = 3_600_000;

/**
 * Returns the parameters of a report of query-api: with dates in place of `range`, whose last day or month is the current
 * one. Dates of the address count instead of it, and are days of its time zone, or that of the calendar.
 */
export function withDates(params: URLSearchParams, calendar: Calendar, now: Date): URLSearchParams {
  const timeZone = zoneOf(params, calendar);
  const query = without(withLocalDays(params, timeZone), 'range');
  if (query.has('startDate')) return query;
  query.set('startDate', startOf(params.get('range') ?? RANGE_DEFAULT, timeZone, now).toISOString());
  return query;
}

/** When a range that ends now begins in a time zone; an unknown range is the default one. */
export function startOf(range: string, timeZone: string, now: Date): Date {
  const { hours = 0, days = 0, months = 0 } = RANGES[range] ?? { days: 30 };
  if (hours > 0) return new Date(now.getTime() - hours * HOUR_MS);
  const { year, month, day } = dateIn(timeZone, now.getTime());
  const first = months > 0 ? { year, month: month - months + 1, day: 1 } : { year, month, day: day - days + 1 };
  return new Date(startOfDate(timeZone, first));
}

/** The clocks of a browser and of query-api may differ by so many milliseconds, and numbers be so old. */
const NOW_MS = 600_000;

/** What a report reads is of, as a person says it: `Last 30 days` if it ends now, its first and last day otherwise. */
export function labelOfTime(startDate: string, endDate: string | null, timeZone: string, now: Date): string {
  const [start, end] = [Date.parse(startDate), endDate === null ? now.getTime() : Date.parse(endDate)];
  if (Math.abs(now.getTime() - end) < NOW_MS) {
    // Days of a view without a time zone are of UTC.
    const begins = (name: string) => [timeZone, 'UTC'].map((zone) => startOf(name, zone, new Date(end)).getTime());
    const range = Object.entries(RANGES).find(([name]) => begins(name).includes(start));
    if (range) return range[1].label;
  }
  return new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone }).formatRange(start, end);
}

/** How many hours the dates of a report span, to now without an end; `NaN` where a date is none. */
export function hoursOf(query: URLSearchParams, now: Date): number {
  const end = query.get('endDate');
  return (Number(end === null ? now : new Date(end)) - Number(new Date(query.get('startDate') ?? ''))) / HOUR_MS;
}

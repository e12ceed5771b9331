import { withLocalDays } from './days.ts';
import { without } from './route.ts';
import { type Calendar, zoneOf } from './settings.ts';
import { dateIn, startOfDate } from './zoned-time.ts';

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

/** How many hours the dates of a report span, to now without an end; `NaN` where a date is none. */
export function hoursOf(query: URLSearchParams, now: Date): number {
  const end = query.get('endDate');
  return (Number(end === null ? now : new Date(end)) - Number(new Date(query.get('startDate') ?? ''))) / HOUR_MS;
}

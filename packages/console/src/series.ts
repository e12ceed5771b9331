import type { EventSeries } from './api.ts';
import { withLocalDays } from './days.ts';
import { without } from './filters.ts';
import type { Calendar } from './settings.ts';
import { dateIn, startOfDate } from './zoned-time.ts';

type Series = EventSeries['series'][number];
type GroupKey = Series['group'][number];

/** A series as it is drawn: with a name, and beside the series of the time before. */
export interface Line {
  readonly label: string;
  readonly total: number | null;
  readonly values: readonly (number | null)[];
  readonly previous: Pick<Series, 'total' | 'values'> | undefined;
}

/** Returns the lines of a response, the remaining groups last. */
export function linesOf({ series, other, measure, previous }: EventSeries): Line[] {
  const lines = series.map(({ group, ...rest }, index) => ({
    ...rest,
    label: group.length === 0 ? measure : group.map(labelOf).join(' / '),
    previous: previous?.series[index],
  }));
  if (!other) return lines;
  return [...lines, { ...other, label: 'All others', previous: previous?.other ?? undefined }];
}

function labelOf(key: GroupKey): string {
  if (key === null) return '(none)';
  return typeof key === 'string' ? key : JSON.stringify(key);
}

/** How long a range is, and the interval that draws it well. */
const RANGES: Readonly<Record<string, { readonly hours?: number; readonly days?: number; readonly months?: number }>> =
  {
    '1h': { hours: 1 },
    '24h': { hours: 24 },
    '7d': { days: 7 },
    '30d': { days: 30 },
    '90d': { days: 90 },
    '12m': { months: 12 },
    '60m': { months: 60 },
  };

const RANGE_DEFAULT = '30d';

const HOUR_MS = 3_600_000;

/**
 * Returns the parameters of `GET /events/series` for those of the page. The page also has `range`, whose last day or month
 * is the current one; dates count instead of it, and are days of the calendar's zone. The interval follows from the range
 * when the page has none.
 */
export function seriesParams(params: URLSearchParams, calendar: Calendar, now: Date): URLSearchParams {
  const query = without(withLocalDays(params, calendar.timeZone), 'range');
  for (const [name, value] of Object.entries(calendar)) query.set(name, value);
  if (!query.has('startDate')) {
    const startMs = startOf(params.get('range') ?? RANGE_DEFAULT, calendar.timeZone, now.getTime());
    query.set('startDate', new Date(startMs).toISOString());
  }
  if (!query.has('interval')) query.set('interval', intervalOf(query, now));
  return query;
}

/** Returns the parameters of `GET /events/series` that count the days up to a time beside as many days before. */
export function comparison(days: number, now: Date): URLSearchParams {
  const startDate = new Date(now.getTime() - days * 24 * HOUR_MS).toISOString();
  return new URLSearchParams({ startDate, endDate: now.toISOString(), interval: 'none', compare: 'previous' });
}

function startOf(range: string, timeZone: string, nowMs: number): number {
  const { hours = 0, days = 0, months = 0 } = RANGES[range] ?? { days: 30 };
  if (hours > 0) return nowMs - hours * HOUR_MS;
  const { year, month, day } = dateIn(timeZone, nowMs);
  return startOfDate(
    timeZone,
    months > 0 ? { year, month: month - months + 1, day: 1 } : { year, month, day: day - days + 1 },
  );
}

function intervalOf(query: URLSearchParams, now: Date): string {
  const end = query.get('endDate');
  const hours = (Number(end === null ? now : new Date(end)) - Number(new Date(query.get('startDate') ?? ''))) / HOUR_MS;
  if (hours <= 2) return 'minute';
  if (hours <= 3 * 24) return 'hour';
  return hours <= 200 * 24 ? 'day' : 'month';
}

import { without } from './filters.ts';

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/;

/**
 * Returns parameters as query-api takes them. A date alone in `startDate` or `endDate` is a day of the browser's time
 * zone, as charts draw it; for query-api it would be one of UTC. Anything else stays as it is.
 */
export function withLocalDays(params: URLSearchParams): URLSearchParams {
  const query = without(params);
  const [from, to] = [localDay(params.get('startDate')), localDay(params.get('endDate'))];
  if (from) query.set('startDate', from.start.toISOString());
  if (to) query.set('endDate', new Date(to.next.getTime() - 1).toISOString());
  return query;
}

/** Returns when a day of the browser's time zone and the day after it begin; `undefined` for a text that is no date. */
function localDay(text: string | null): { readonly start: Date; readonly next: Date } | undefined {
  const [, year, month, day] = DAY.exec(text ?? '')?.map(Number) ?? [];
  if (year === undefined || month === undefined || day === undefined) return undefined;
  const start = new Date(year, month - 1, day);
  // A day that the calendar does not have is query-api's to refuse.
  if (start.getFullYear() !== year || start.getMonth() !== month - 1 || start.getDate() !== day) return undefined;
  return { start, next: new Date(year, month - 1, day + 1) };
}

/** Returns a day of the browser's zone as an address has it. */
export function dayOf(time: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  return `${String(time.getFullYear()).padStart(4, '0')}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

interface Buckets {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly startDate: string;
  readonly endDate: string;
}

/** Returns the buckets that lie only partly in a range: the first, the last, both or none. */
export function partialBuckets({ buckets, interval, timeZone, startDate, endDate }: Buckets): ReadonlySet<string> {
  const partial = new Set<string>();
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (interval === 'none' || first === undefined || last === undefined) return partial;
  if (Date.parse(first) < Date.parse(startDate)) partial.add(first);
  if (!isStart(interval, timeZone, Date.parse(endDate) + 1)) partial.add(last);
  return partial;
}

const PARTS: Readonly<Record<string, Intl.DateTimeFormatOptions>> = {
  // Where the clocks change, another hour begins: its offset differs.
  hour: { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', timeZoneName: 'longOffset' },
  day: { dateStyle: 'short' },
  week: { dateStyle: 'short' },
  month: { year: 'numeric', month: 'numeric' },
};

/** Whether an interval of a calendar begins at a time. */
function isStart(interval: string, timeZone: string, ms: number): boolean {
  if (interval === 'minute') return ms % 60_000 === 0;
  const { format } = new Intl.DateTimeFormat('en', { ...PARTS[interval], timeZone });
  if (format(ms) === format(ms - 1)) return false;
  const weekday = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone });
  return interval !== 'week' || weekday.format(ms) === 'Mon';
}

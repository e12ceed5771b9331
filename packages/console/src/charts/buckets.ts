interface Buckets {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly startDate: string;
  readonly endDate: string;
}

interface CalendarBuckets extends Buckets {
  readonly interval: string;
  readonly timeZone: string;
}

/** The first and the last time of a bucket that are in the range, as `startDate` and `endDate` of another query. */
interface BucketTime {
  readonly startDate: string;
  readonly endDate: string;
}

/** Returns the time of the buckets from one to another. */
export function timeOfBuckets({ buckets, startDate, endDate }: Buckets, first: number, last = first): BucketTime {
  const [begin, next] = [buckets[first], buckets[last + 1]];
  return {
    startDate: begin === undefined || Date.parse(begin) < Date.parse(startDate) ? startDate : begin,
    endDate: next === undefined ? endDate : new Date(Date.parse(next) - 1).toISOString(),
  };
}

/** Returns the buckets that lie only partly in a range: the first, the last, both or none. */
export function partialBuckets({
  buckets,
  interval,
  timeZone,
  startDate,
  endDate,
}: CalendarBuckets): ReadonlySet<string> {
  const partial = new Set<string>();
  const [first, last] = [buckets[0], buckets.at(-1)];
  if (interval === 'none' || first === undefined || last === undefined) return partial;
  if (Date.parse(first) < Date.parse(startDate)) partial.add(first);
  if (!isStart(interval, timeZone, Date.parse(endDate) + 1, first)) partial.add(last);
  return partial;
}

const PARTS: Readonly<Record<string, Intl.DateTimeFormatOptions>> = {
  // Where the clocks change, another hour begins: its offset differs.
  hour: { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', timeZoneName: 'longOffset' },
  day: { dateStyle: 'short' },
  week: { dateStyle: 'short' },
  month: { year: 'numeric', month: 'numeric' },
};

/** Whether an interval of a calendar begins at a time. Another one begins at `other`: a week has the same weekday there. */
function isStart(interval: string, timeZone: string, ms: number, other: string): boolean {
  if (interval === 'minute') return ms % 60_000 === 0;
  const { format } = new Intl.DateTimeFormat('en', { ...PARTS[interval], timeZone });
  if (format(ms) === format(ms - 1)) return false;
  const weekday = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone });
  return interval !== 'week' || weekday.format(ms) === weekday.format(new Date(other));
}

const WIDTHS_MS: Readonly<Record<string, number>> = { minute: 60_000, hour: 3_600_000, week: 7 * 86_400_000 };

/** Returns when each bucket ends, in milliseconds since 1970; that of the last one follows from the interval. */
export function endsOf(buckets: readonly string[], interval: string): number[] {
  return buckets.map((bucket, index) => {
    const next = buckets[index + 1];
    if (next !== undefined) return Date.parse(next);
    const days = interval === 'month' ? 30 : 1;
    return Date.parse(bucket) + (WIDTHS_MS[interval] ?? days * 86_400_000);
  });
}

/** How many hours or minutes may be between two names on an axis. */
const STEPS: Readonly<Record<string, readonly number[]>> = {
  minute: [1, 5, 10, 15, 30, 60, 180, 360, 720, 1_440],
  hour: [1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 720],
};

/**
 * Returns the buckets that an axis names, by index: each is the beginning of a bucket, so those of weeks are Mondays. Hours
 * and minutes are those that a clock shows, such as 0, 6, 12 and 18.
 *
 * @param max how many names there is room for
 */
export function ticksOf(buckets: readonly string[], interval: string, timeZone: string, max: number): number[] {
  const least = Math.max(1, Math.ceil(buckets.length / Math.max(1, max)));
  const step = (STEPS[interval] ?? []).find((one) => one >= least) ?? least;
  const first = buckets.findIndex(
    (bucket) => placeOf(bucket, interval, timeZone) % Math.min(step, CYCLES[interval] ?? 1) === 0,
  );
  const ticks: number[] = [];
  for (let index = Math.max(0, first); index < buckets.length; index += step) ticks.push(index);
  return ticks;
}

/** How many minutes or hours a day has. */
const CYCLES: Readonly<Record<string, number>> = { minute: 1_440, hour: 24 };

/** Returns the hour of the day of an hour, the minute of the day of a minute. */
function placeOf(bucket: string, interval: string, timeZone: string): number {
  const format = new Intl.DateTimeFormat('en', { hour: 'numeric', minute: 'numeric', hourCycle: 'h23', timeZone });
  const [hour = 0, minute = 0] = format.format(new Date(bucket)).split(':').map(Number);
  return interval === 'minute' ? 60 * hour + minute : hour;
}

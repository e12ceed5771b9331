import { without } from './route.ts';
import { type CalendarDate, startOfDate } from './zoned-time.ts';

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

import { type InputError, Problem } from '@sluice/shared/http/problem';
import { type QueryParameters, queryOf } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { refuseErrors } from '../../records/records.ts';
import { timeZoneParameter } from '../../reports/reports.ts';
import type { View } from './view.ts';

/** How views draw the numbers. */
const FORMS: readonly string[] = ['line', 'bar', 'stacked', 'number'];

const RANGE = /^([1-9]\d{0,2})([hdm])$/;

const RANGE_FAULT = 'must be a number with h, d or m, such as 30d';

/** A range of a view, in the place of its own one. */
export const rangeParameter = z.string().regex(RANGE, RANGE_FAULT);

/**
 * Returns a view with another range, of which its dates say nothing, and in whose intervals it may not be drawn. The range of SQL is
 * that of its statement.
 */
export function inRange(
  view: Pick<View, 'report' | 'parameters'>,
  range: string | undefined,
): Pick<View, 'report' | 'parameters'> {
  if (range === undefined || view.report === 'sql') return view;
  const { startDate: _, endDate: __, interval, ...parameters } = view.parameters;
  return { ...view, parameters: { ...parameters, range, ...(interval === 'none' && { interval }) } };
}

/** The last 30 days, unless a view says otherwise. */
const RANGE_DEFAULT = '30d';

const DAY = /^\d{4}-\d{2}-\d{2}$/;

const HOUR_MS = 3_600_000;

/**
 * Returns the query of a view's report at a time, with the errors of the parameters that only the console knows. SQL has none of
 * them. A range ends now and begins with a whole day or month, or some hours ago; a date alone is a day of the time zone; and the
 * interval of a series or of cohorts follows from its range unless the view has one. In `packages/console/src`, `base/dates.ts`,
 * `charts/series.ts` and `explore/reports.ts` do the same for pages: `@sluice/shared/testing/report-ranges` has examples for both.
 */
export function viewQuery(
  { report, parameters }: Pick<View, 'report' | 'parameters'>,
  now: Date,
): { readonly query: QueryParameters; readonly errors: readonly InputError[] } {
  if (report === 'sql') return { query: queryOf(parameters), errors: [] };
  const { range = RANGE_DEFAULT, form, markers: _, timeZone = 'UTC', weekStart, ...given } = parameters;
  const errors: InputError[] = [];
  const zone = timeZoneParameter.safeParse(timeZone);
  if (!RANGE.test(range)) errors.push(fault('range', RANGE_FAULT));
  if (form !== undefined && !FORMS.includes(form)) errors.push(fault('form', `must be one of ${FORMS.join(', ')}`));
  if (!zone.success) errors.push(...zone.error.issues.map(({ message }) => fault('timeZone', message)));
  const texts = { ...given, ...datesOf({ ...given, range }, zone.data ?? 'UTC', now) };
  const interval = given['interval'] ?? intervalOf(report, hoursOf(texts, now));
  const own = {
    ...(hasCalendar(report) && {
      interval,
      ...(zone.success && { timeZone }),
      ...(weekStart !== undefined && { weekStart }),
    }),
  };
  return { query: queryOf({ ...texts, ...own }), errors };
}

/**
 * Checks the parameters of a view.
 *
 * @param parse the parser of its report
 * @throws {Problem} `invalid_request`, naming every error
 */
export async function requireReport(
  view: Pick<View, 'report' | 'parameters'>,
  parse: (query: QueryParameters) => Promise<void>,
): Promise<void> {
  const { query, errors } = viewQuery(view, new Date());
  refuseErrors(
    [...errors, ...(await errorsOf(() => parse(query)))].map((one) => ({ ...one, path: `parameters.${one.path}` })),
  );
}

async function errorsOf(parse: () => Promise<void>): Promise<readonly InputError[]> {
  try {
    await parse();
    return [];
  } catch (error) {
    if (error instanceof Problem && error.errors) return error.errors;
    throw error;
  }
}

function fault(path: string, message: string): InputError {
  return { path, code: 'invalid', message };
}

function hasCalendar(report: View['report']): boolean {
  return report === 'series' || report === 'retention';
}

/** Returns the dates to send. One that is no date stays as it is: the parser of the report names it. */
function datesOf(
  { startDate, endDate, range = RANGE_DEFAULT }: Readonly<Record<string, string>>,
  timeZone: string,
  now: Date,
): Readonly<Record<string, string>> {
  const from =
    startDate === undefined ? startOf(range, timeZone, now) : (startOfDay(startDate, 0, timeZone) ?? startDate);
  if (endDate === undefined) return { startDate: from };
  const next = startOfDay(endDate, 1, timeZone);
  const to = next === undefined ? endDate : new Date(Date.parse(next) - 1).toISOString();
  return { startDate: from, endDate: to };
}

function startOf(range: string, timeZone: string, now: Date): string {
  const [, digits = '30', unit = 'd'] = RANGE.exec(range) ?? [];
  const count = Number(digits);
  if (unit === 'h') return new Date(now.getTime() - count * HOUR_MS).toISOString();
  const today = now.toTemporalInstant().toZonedDateTimeISO(timeZone).toPlainDate();
  return isoTime(
    unit === 'm' ? today.subtract({ months: count - 1 }).with({ day: 1 }) : today.subtract({ days: count - 1 }),
    timeZone,
  );
}

/** Returns when a day begins, or one some days later; `undefined` for a text that is no day of the calendar. */
function startOfDay(text: string, later: number, timeZone: string): string | undefined {
  if (!DAY.test(text)) return undefined;
  try {
    return isoTime(Temporal.PlainDate.from(text).add({ days: later }), timeZone);
  } catch {
    return undefined;
  }
}

function isoTime(day: Temporal.PlainDate, timeZone: string): string {
  return new Date(day.toZonedDateTime(timeZone).epochMilliseconds).toISOString();
}

function hoursOf({ startDate = '', endDate }: Readonly<Record<string, string>>, now: Date): number {
  const endMs = endDate === undefined ? now.getTime() : Date.parse(endDate);
  return (endMs - Date.parse(startDate)) / HOUR_MS;
}

function intervalOf(report: View['report'], hours: number): string {
  if (report === 'retention') {
    if (hours <= 10 * 24) return 'day';
    return hours <= 200 * 24 ? 'week' : 'month';
  }
  if (hours <= 2) return 'minute';
  if (hours <= 3 * 24) return 'hour';
  return hours <= 200 * 24 ? 'day' : 'month';
}

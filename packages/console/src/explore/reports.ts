import { type Calendar, hoursOf, joinList, RANGES, splitList, withDates, without } from '../base/base.ts';
import { seriesParams } from '../charts/charts.ts';
import { eventFilters } from '../filters/filters.ts';

/** The reports of the page, by the parameter `report`. */
export const REPORTS = {
  series: { path: 'events/series' },
  funnel: { path: 'events/funnel' },
  retention: { path: 'events/retention' },
  values: { path: 'events/values' },
} as const;

export type Report = keyof typeof REPORTS;

/** How a chart shows its numbers, by the parameter `form`. */
export const FORMS = { line: 'Lines', bar: 'Bars', stacked: 'Stacked', number: 'Number' } as const;

export type ReportForm = keyof typeof FORMS;

/** The parameters that only the console has. */
const OWN = ['report', 'form', 'markers', 'view'] as const;

/** Returns the report that an address shows; an unknown one is the chart, and {@link faultsOf} says so. */
export function reportOf(params: URLSearchParams): Report {
  return oneOf(REPORTS, params.get('report')) ?? 'series';
}

/** Returns the form of a chart; an unknown one is lines, and {@link faultsOf} says so. */
export function formOf(text: string | null): ReportForm {
  return oneOf(FORMS, text) ?? 'line';
}

function oneOf<Choices extends object>(choices: Choices, text: string | null): keyof Choices | undefined {
  return text !== null && Object.hasOwn(choices, text) ? (text as keyof Choices) : undefined;
}

/** Returns what is wrong with the console's own parameters, as sentences. */
export function faultsOf(params: URLSearchParams): string[] {
  const choices = { report: REPORTS, form: FORMS, range: RANGES };
  const unknown = Object.entries(choices).flatMap(([name, known]) => {
    const value = params.get(name);
    return value === null || Object.hasOwn(known, value)
      ? []
      : [`${name} must be one of ${Object.keys(known).join(', ')}.`];
  });
  const repeated = [...OWN, 'range'].filter((name) => params.getAll(name).length > 1);
  return [...unknown, ...repeated.map((name) => `${name} is given more than once.`)];
}

/** Returns the parameters of query-api for those of the page. */
export function reportParams(report: Report, params: URLSearchParams, calendar: Calendar, now: Date): URLSearchParams {
  const query = without(params, ...OWN);
  if (report === 'series') return seriesParams(query, calendar, now);
  const dated = withDates(query, calendar, now);
  if (report !== 'retention') return without(dated, ...Object.keys(calendar));
  for (const [name, value] of Object.entries(calendar)) if (!dated.has(name)) dated.set(name, value);
  if (!dated.has('interval')) dated.set('interval', cohortOf(hoursOf(dated, now)));
  return dated;
}

function cohortOf(hours: number): string {
  if (hours <= 10 * 24) return 'day';
  return hours <= 200 * 24 ? 'week' : 'month';
}

/** Whether the address has what the report cannot do without. */
export function isReady(report: Report, params: URLSearchParams): boolean {
  if (report === 'funnel') return splitList(params.get('steps') ?? '').filter((step) => step !== '').length > 1;
  return report !== 'values' || (params.get('property') ?? '') !== '';
}

/** Returns the parameters with which another report shows the same events. */
export function switchReport(params: URLSearchParams, to: Report): URLSearchParams {
  const from = reportOf(params);
  const kept = new URLSearchParams([
    ['report', to],
    ...[...params].filter(([name]) => ['range', 'startDate', 'endDate', 'timeZone', 'weekStart'].includes(name)),
    ...eventFilters(params),
  ]);
  const [step] = splitList(params.get('steps') ?? '');
  const event = kept.get('event');
  if (from === 'funnel' && step !== undefined) kept.set('event', step);
  if (to === 'funnel' && event !== null) {
    kept.delete('event');
    kept.set('steps', joinList([event]));
  }
  const by = params.get('by');
  if (by !== null && (to === 'funnel' || to === 'retention')) kept.set('by', by);
  const groupBy = params.get('groupBy');
  const groups = groupBy === null ? [] : from === 'series' ? splitList(groupBy) : [groupBy];
  const [group] = groups;
  if (group === undefined) return kept;
  if (to === 'series') kept.set('groupBy', joinList(groups));
  if (to === 'funnel' || to === 'retention') kept.set('groupBy', group);
  if (to === 'values') kept.set('property', group);
  return kept;
}

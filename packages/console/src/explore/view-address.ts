import { type Calendar, hrefOf, type View, without } from '../base/base.ts';

/** The reports as a person calls them. */
export const REPORT_TITLES: Readonly<Record<View['report'], string>> = {
  series: 'Chart',
  funnel: 'Funnel',
  retention: 'Retention',
  values: 'Values',
  sql: 'SQL',
};

/** Returns the page that shows a report. */
export function pageOfReport(report: View['report']): string {
  return report === 'sql' ? 'sql' : 'explore';
}

/** Returns the parameters of the page that shows a view, and can change it. */
export function paramsOfView({ id, report, parameters }: Pick<View, 'id' | 'report' | 'parameters'>): URLSearchParams {
  const params = new URLSearchParams({ ...parameters, view: id });
  if (report !== 'series' && report !== 'sql') params.set('report', report);
  return params;
}

/** Returns the address of that page. */
export function hrefOfView(view: Parameters<typeof paramsOfView>[0]): string {
  return hrefOf([pageOfReport(view.report)], paramsOfView(view));
}

/** Returns the parameters of a view that shows what a page shows, with the same days and weeks for everybody. */
export function parametersOf(params: URLSearchParams, calendar: Calendar): Readonly<Record<string, string>> {
  return { ...calendar, ...Object.fromEntries(without(params, 'report', 'view')) };
}

import type { View } from '../api.ts';
import { without } from '../filters.ts';
import { hrefOf } from '../route.ts';
import type { Calendar } from '../settings.ts';

/** The reports as a person calls them. */
export const REPORT_TITLES: Readonly<Record<View['report'], string>> = {
  series: 'Chart',
  funnel: 'Funnel',
  retention: 'Retention',
  values: 'Values',
};

/** Returns the address of the page that shows a view, and can change it. */
export function hrefOfView({ id, report, parameters }: Pick<View, 'id' | 'report' | 'parameters'>): string {
  const params = new URLSearchParams({ ...parameters, view: id });
  if (report !== 'series') params.set('report', report);
  return hrefOf(['explore'], params);
}

/** Returns the parameters of a view that shows what a page shows, with the same days and weeks for everybody. */
export function parametersOf(params: URLSearchParams, calendar: Calendar): Readonly<Record<string, string>> {
  return { ...calendar, ...Object.fromEntries(without(params, 'report', 'view')) };
}

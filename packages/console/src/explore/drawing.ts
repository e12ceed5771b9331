import type { EventSeries, EventValues, Funnel, Retention } from '../base/base.ts';

/** A response of a report, of which the report is known beside it. */
export type ReportBody = EventSeries & Funnel & Retention & EventValues;

/** What is drawn of a report, in Explore and on a dashboard. */
export interface DrawingProps<Response> {
  readonly response: Response;
  /** Those of the page that shows the report. Without them nothing leads to what is behind the numbers. */
  readonly params: URLSearchParams | undefined;
  /** The name of the view, where a page draws several. */
  readonly title?: string | undefined;
}

/** Returns the name of a part of a drawing, of which a page may have several. */
export function partName(part: string, title: string | undefined): string {
  return title === undefined ? part : `${part} of ${title}`;
}

import {
  dateIn,
  dayText,
  type EventSeries,
  type EventValues,
  type Funnel,
  hrefOf,
  labelOfTime,
  type Retention,
  timeZone,
  without,
} from '../base/base.ts';
import { eventFilters, useNewestEvent } from '../filters/filters.ts';
import { Time } from '../parts/parts.ts';

/** A response of a report, of which the report is known beside it. */
export type ReportBody = EventSeries & Funnel & Retention & EventValues;

/** What is drawn of a report, in Explore and on a dashboard. */
export interface DrawingProps<Response> {
  readonly response: Response;
  /** The parameters of the page that shows the report. Without them nothing leads to what is behind the numbers. */
  readonly params: URLSearchParams | undefined;
  /** The name of the view, where a page draws several. */
  readonly title?: string | undefined;
}

/** Returns the name of a part of a drawing, of which a page may have several. */
export function partName(part: string, title: string | undefined): string {
  return title === undefined ? part : `${part} of ${title}`;
}

interface ReportNotesProps {
  readonly startDate: string | null;
  readonly endDate: string | null;
  readonly timeZone?: string;
  readonly complete: boolean;
  readonly exact: boolean;
  /** Whether the time is said in a few words, as on a dashboard. Default: to the second. */
  readonly isShort?: boolean;
  /** What else there is to know of the range. */
  readonly note?: string;
}

/** Says which time the numbers are of, and where they are not all there is. */
export function ReportNotes(props: ReportNotesProps) {
  const { startDate, endDate, timeZone: zone, complete, exact, isShort = false, note = '' } = props;
  return (
    <>
      {isShort && startDate !== null ? (
        <p class="muted">{labelOfTime(startDate, endDate, zone ?? timeZone.value, new Date())}</p>
      ) : (
        <p class="muted">
          {startDate !== null && <Time value={startDate} full />} to{' '}
          {endDate === null ? 'now' : <Time value={endDate} full />}
          {zone && `, ${zone}`}
          {note}
        </p>
      )}
      {!complete && (
        <p class="notice">
          <strong>Incomplete:</strong> the query ran out of time. Choose a shorter range, or add filters.
        </p>
      )}
      {!exact && (
        <p class="notice">
          <strong>Approximate:</strong> there are too many different values to count them exactly (error below 1 %).
        </p>
      )}
    </>
  );
}

/** Says that nothing matches in the range and, with the parameters of the page, where there is something. */
export function EmptyHint({ params }: { readonly params: URLSearchParams | undefined }) {
  return params ? <MonthHint params={params} /> : <p class="notice">Nothing matches in this range.</p>;
}

function MonthHint({ params }: { readonly params: URLSearchParams }) {
  const newest = useNewestEvent(eventFilters(params));
  return (
    <p class="notice">
      Nothing matches in this range. {newest === null && 'Nothing matches at any other time either.'}
      {newest && (
        <>
          The newest such event is of {formatDate(newest.timestamp)}:{' '}
          <a href={monthHref(params, Date.parse(newest.timestamp))}>show that month</a>.
        </>
      )}
    </p>
  );
}

function formatDate(timestamp: string): string {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'long', timeZone: timeZone.value });
  return format.format(new Date(timestamp));
}

function monthHref(params: URLSearchParams, ms: number): string {
  const month = without(params, 'range', 'startDate', 'endDate', 'interval');
  const date = dateIn(timeZone.value, ms);
  month.set('startDate', dayText({ ...date, day: 1 }));
  month.set('endDate', dayText({ ...date, month: date.month + 1, day: 0 }));
  return hrefOf(['explore'], month);
}

/** A bar as long as a share of the whole, from 0 to 1. The number beside it says the same. */
export function ShareBar({ share }: { readonly share: number }) {
  return (
    <svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="share-whole" width="100" height="10" />
      <rect width={Math.min(100, Math.max(0, 100 * share))} height="10" />
    </svg>
  );
}

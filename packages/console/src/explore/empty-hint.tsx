import { dateIn, dayText, hrefOf, timeZone, without } from '../base/base.ts';
import { eventFilters, useNewestEvent } from '../filters/filters.ts';

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

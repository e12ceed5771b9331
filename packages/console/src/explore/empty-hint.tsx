import { type EventPage, getRecords } from '../api.ts';
import { dayOf } from '../days.ts';
import { eventFilters, without } from '../filters.ts';
import { hrefOf } from '../route.ts';
import { useLoad } from '../use-load.ts';

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'long' });

/** Says that nothing matches in the range, and where there is something. */
export function EmptyHint({ params }: { readonly params: URLSearchParams }) {
  const query = new URLSearchParams([...eventFilters(params), ['limit', '1'], ['total', 'none']]);
  const { data } = useLoad(query.toString(), (signal) => getRecords<EventPage>(`events?${query}`, signal));
  const newest = data?.results[0];
  return (
    <p class="notice">
      Nothing matches in this range. {data && !newest && 'Nothing matches at any other time either.'}
      {newest && (
        <>
          The newest such event is of {DATE.format(new Date(newest.timestamp))}:{' '}
          <a href={monthHref(params, new Date(newest.timestamp))}>show that month</a>.
        </>
      )}
    </p>
  );
}

function monthHref(params: URLSearchParams, time: Date): string {
  const month = without(params, 'range', 'startDate', 'endDate', 'interval');
  month.set('startDate', dayOf(new Date(time.getFullYear(), time.getMonth(), 1)));
  month.set('endDate', dayOf(new Date(time.getFullYear(), time.getMonth() + 1, 0)));
  return hrefOf(['explore'], month);
}

import { type Event, type EventPage, getRecords, hrefOf, without } from '../base/base.ts';
import { Time, useLoad } from '../parts/parts.ts';

/** The parameters that say which time a page shows, and what it shows of it. */
const NOT_FILTERS = [
  'startDate',
  'endDate',
  'range',
  'cursor',
  'offset',
  'limit',
  'orderByField',
  'orderByDirection',
  'total',
  'show',
];

/**
 * Loads the newest event that matches filters, which must have no order of their own: `null` where there is none, `undefined`
 * until that is known.
 */
export function useNewestEvent(filters: URLSearchParams): Event | null | undefined {
  const query = new URLSearchParams([...filters, ['limit', '1'], ['total', 'none']]);
  const { data } = useLoad(query.toString(), (signal) => getRecords<EventPage>(`events?${query}`, signal));
  return data && (data.results[0] ?? null);
}

/** Says when the newest event is that matches the filters at any time. It is for pages whose time has no events. */
export function NewestHint({ filters }: { readonly filters: URLSearchParams }) {
  const others = without(filters, ...NOT_FILTERS);
  const newest = useNewestEvent(others);
  if (newest === undefined) return null;
  if (newest === null) return <p class="muted">There are none of another time either.</p>;
  return (
    <p class="notice">
      The newest event is of <Time value={newest.timestamp} full />: <a href={hrefOf(['events'], others)}>show it</a>.
    </p>
  );
}

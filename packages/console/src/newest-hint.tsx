import { type EventPage, getRecords } from './api.ts';
import { without } from './filters.ts';
import { hrefOf } from './route.ts';
import { Time } from './time.tsx';
import { useLoad } from './use-load.ts';

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

/** Where a time has no events: says when the newest one is that matches the other filters. */
export function NewestHint({ filters }: { readonly filters: URLSearchParams }) {
  const others = without(filters, ...NOT_FILTERS);
  const { data } = useLoad(others.toString(), (signal) =>
    getRecords<EventPage>(`events?${new URLSearchParams([...others, ['limit', '1'], ['total', 'none']])}`, signal),
  );
  const [newest] = data?.results ?? [];
  if (!newest) return data && <p class="muted">There are none of another time either.</p>;
  return (
    <p class="notice">
      The newest event is of <Time value={newest.timestamp} />: <a href={hrefOf(['events'], others)}>show it</a>.
    </p>
  );
}

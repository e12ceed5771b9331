import { useState } from 'preact/hooks';
import { type EventPage, getRecords } from './api.ts';
import { timeZone } from './current-settings.ts';
import { withLocalDays } from './days.ts';
import { EventTable } from './event-table.tsx';
import { EVENT_FIELDS } from './fields.ts';
import { FilterForm } from './filter-form.tsx';
import { without } from './filters.ts';
import { useLiveTail } from './live-tail.ts';
import { Problem } from './problem.tsx';
import { hrefOf } from './route.ts';
import { useLoad } from './use-load.ts';

/** A page is small, and its count fast, unless the address says otherwise. */
const DEFAULTS = { limit: '50', total: 'capped' } as const;

/** The events that match the parameters of the address, which are those of `GET /events`. */
export function EventsPage({ params }: { readonly params: URLSearchParams }) {
  const [isLive, setIsLive] = useState(false);
  const tail = useLiveTail(isLive, params);
  const defaults = Object.entries(DEFAULTS).filter(([name]) => !params.has(name));
  const query = new URLSearchParams([...defaults, ...withLocalDays(params, timeZone.value)]);
  const { data, error, isLoading } = useLoad(`${query} ${tail.starts}`, (signal) =>
    getRecords<EventPage>(`events?${query}`, signal),
  );
  const tailed = new Set(tail.events.map(({ uuid }) => uuid));
  const events = [...tail.events, ...(data?.results ?? []).filter(({ uuid }) => !tailed.has(uuid))];
  return (
    <>
      <h1>Events</h1>
      <FilterForm
        params={params}
        fields={EVENT_FIELDS}
        onApply={(applied) => {
          location.hash = hrefOf(['events'], applied);
        }}
      />
      <div class="bar">
        <button type="button" role="switch" aria-checked={isLive} onClick={() => setIsLive(!isLive)}>
          Live tail
        </button>
        <p role="status">
          {isLoading ? 'Loading …' : data && totalText(data)} {tail.status}
        </p>
        <a
          href={hrefOf(
            ['explore'],
            without(params, 'cursor', 'offset', 'limit', 'total', 'orderByField', 'orderByDirection'),
          )}
        >
          Explore these
        </a>
      </div>
      {tail.error && <Problem error={tail.error} />}
      {error && <Problem error={error} />}
      {events.length > 0 && <EventTable events={events} caption="Events" />}
      <Pages params={params} nextCursor={data?.nextCursor ?? null} />
    </>
  );
}

function Pages({ params, nextCursor }: { readonly params: URLSearchParams; readonly nextCursor: string | null }) {
  const next = without(params, 'cursor', 'offset');
  const first = hrefOf(['events'], next);
  if (nextCursor !== null) next.set('cursor', nextCursor);
  return (
    <nav class="bar" aria-label="Pages of events">
      {params.has('cursor') && <a href={first}>First page</a>}
      {nextCursor !== null && <a href={hrefOf(['events'], next)}>Next page</a>}
    </nav>
  );
}

function totalText({ total, totalIsLowerBound, results }: EventPage): string {
  const shown = results.length.toLocaleString();
  if (total === null) return `${shown} events on this page.`;
  return `${shown} of ${totalIsLowerBound ? 'more than ' : ''}${total.toLocaleString()} events.`;
}

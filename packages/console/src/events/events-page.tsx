import { useState } from 'preact/hooks';
import {
  type EventPage,
  formatCount,
  formatNumber,
  getRecords,
  hrefOf,
  timeZone,
  withLocalDays,
  without,
} from '../base/base.ts';
import { EVENT_FIELDS, FilterForm, NewestHint } from '../filters/filters.ts';
import { CsvButton, LoadState, PageLinks, Problem, tableOf, useLoad } from '../parts/parts.ts';
import { EventList, EventTable } from './event-list.tsx';
import { useLiveTail, withStored } from './live-tail.ts';

/** A page is small, and its count fast, unless the address says otherwise. */
const DEFAULTS = { limit: '50', total: 'capped' } as const;

interface EventsPageProps {
  /** The parameters of `GET /events`, and `show`: the uuid of the event that is open beside the list. */
  readonly params: URLSearchParams;
}

/** The events that match the parameters of the address. */
export function EventsPage({ params: all }: EventsPageProps) {
  const params = without(all, 'show');
  const shown = all.get('show');
  const [isLive, setIsLive] = useState(false);
  const tail = useLiveTail(isLive, params);
  const defaults = Object.entries(DEFAULTS).filter(([name]) => !params.has(name));
  const query = new URLSearchParams([...defaults, ...withLocalDays(params, timeZone.value)]);
  const loaded = useLoad(`${query} ${tail.starts}`, (signal) => getRecords<EventPage>(`events?${query}`, signal));
  const { data, isLoading } = loaded;
  const events = withStored(tail, data?.results ?? []);
  const addressOf = (uuid?: string) =>
    hrefOf(['events'], uuid === undefined ? params : new URLSearchParams([...params, ['show', uuid]]));
  const isTimed = params.has('startDate') || params.has('endDate');
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
        <p role="status">{tail.status}</p>
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
      <LoadState loaded={loaded} status={data && totalText(data)} />
      {isTimed && !isLoading && data && events.length === 0 && <NewestHint filters={params} />}
      <EventList events={events} filters={params} shown={shown} addressOf={addressOf}>
        {events.length > 0 && (
          <EventTable events={events} caption="Events" filters={params} shown={shown} addressOf={addressOf} />
        )}
        <PageLinks path="events" label="Pages of events" params={params} nextCursor={data?.nextCursor ?? null} />
        {events.length > 0 && <CsvButton name="These events" table={() => tableOf(events)} />}
      </EventList>
    </>
  );
}

function totalText({ total, totalIsLowerBound, results }: EventPage): string {
  if (total === null) return `${formatCount(results.length, 'event')} on this page.`;
  return `${formatNumber(results.length)} of ${totalIsLowerBound ? 'more than ' : ''}${formatCount(total, 'event')}.`;
}

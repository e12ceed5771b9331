import { useMemo, useRef, useState } from 'preact/hooks';
import { type Event, type EventPage, formatCount, formatDuration, getRecords, hrefOf, without } from '../base/base.ts';
import { EventLink, EventList } from '../events/events.ts';
import { Combobox, suggestEvents } from '../filters/filters.ts';
import { clocks, EntityLink, LoadState, PropertyLine, useLoad } from '../parts/parts.ts';
import { ENTITY_KINDS, type EntityProps, personParams } from './entity-kinds.ts';
import { type SessionPart, type TimelineDay, timelineOf } from './timeline.ts';

const LIMIT = 100;

/** The filter of the search for events by name. */
const SEARCH = 'event[contains]';

interface EntityTimelineProps extends EntityProps {
  /** Filters of `GET /events`, and `show`. */
  readonly params: URLSearchParams;
}

/** The events of a user by day and session, those of an organization by day, the newest first; older ones on demand. */
export function EntityTimeline({ path, id, params: all }: EntityTimelineProps) {
  const params = without(all, 'show');
  const filters = without(params);
  for (const [name, value] of Object.entries({ [ENTITY_KINDS[path].filter]: id, ...personParams(path) })) {
    filters.set(name, value);
  }
  const addressOf = (uuid?: string) =>
    hrefOf([path, id], uuid === undefined ? params : new URLSearchParams([...params, ['show', uuid]]));
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">Events</h2>
      <SearchForm key={params.get(SEARCH)} path={path} id={id} params={params} />
      <Days
        key={filters.toString()}
        {...{ path, filters, addressOf }}
        shown={all.get('show')}
        // Gaps between some of the events are no gaps between sessions.
        hasSessions={path === 'users' && params.size === 0}
      />
    </section>
  );
}

function SearchForm({ path, id, params }: EntityTimelineProps) {
  const [text, setText] = useState(params.get(SEARCH) ?? '');
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    const others = without(params, SEARCH);
    location.hash = hrefOf([path, id], text === '' ? others : new URLSearchParams([...others, [SEARCH, text]]));
  };
  return (
    <search>
      <form class="bar" onSubmit={search}>
        <Combobox label="Event name contains" value={text} suggest={suggestEvents} onChange={setText} />
        <button type="submit">Search</button>
        {params.size > 0 && <a href={hrefOf([path, id])}>Show all</a>}
      </form>
    </search>
  );
}

interface DaysProps {
  readonly path: EntityProps['path'];
  readonly filters: URLSearchParams;
  readonly shown: string | null;
  readonly addressOf: (uuid?: string) => string;
  readonly hasSessions: boolean;
}

function Days({ path, filters, shown, addressOf, hasSessions }: DaysProps) {
  const [cursor, setCursor] = useState('');
  /** The events of all pages so far, which a page that fails leaves as they are. */
  const allEvents = useRef<readonly Event[]>([]);
  const loaded = useLoad(cursor, async (signal) => {
    const query = new URLSearchParams([...filters, ['limit', String(LIMIT)], ['total', 'none']]);
    if (cursor !== '') query.set('cursor', cursor);
    const { results, nextCursor } = await getRecords<EventPage>(`events?${query}`, signal);
    if (!signal.aborted) allEvents.current = [...allEvents.current, ...results];
    return { nextCursor };
  });
  const { data, error, isLoading } = loaded;
  const events = allEvents.current;
  const nextCursor = data?.nextCursor ?? null;
  const days = useMemo(
    () => timelineOf(events, (ms) => clocks.value.date.format(ms), nextCursor !== null),
    [events, nextCursor, clocks.value],
  );
  return (
    <EventList events={events} filters={filters} shown={shown} addressOf={addressOf}>
      {days.map((day) => (
        <Day key={day.newestMs} {...{ path, day, shown, addressOf, hasSessions }} />
      ))}
      <LoadState loaded={loaded} status={!error && statusOf(events.length, nextCursor !== null)} />
      {nextCursor !== null && !isLoading && (
        <button type="button" onClick={() => setCursor(nextCursor)}>
          Load older events
        </button>
      )}
    </EventList>
  );
}

function statusOf(count: number, hasMore: boolean): string {
  if (count === 0) return 'No events.';
  return `${hasMore ? 'The newest' : 'All'} ${formatCount(count, 'event')}.`;
}

interface DayProps extends Omit<DaysProps, 'filters'> {
  readonly day: TimelineDay;
}

function Day({ day: { newestMs, parts }, hasSessions, ...row }: DayProps) {
  return (
    <>
      <h3>{clocks.value.date.format(newestMs)}</h3>
      <ol class="timeline">
        {parts.map((part) => (
          <li key={part.events[0]?.uuid}>
            {hasSessions && <p class="session">{sessionText(part)}</p>}
            <ol>
              {part.events.map((event) => (
                <TimelineRow key={event.uuid} event={event} {...row} />
              ))}
            </ol>
          </li>
        ))}
      </ol>
    </>
  );
}

/** A session's times, length and number of events, on each of its days. */
function sessionText({ session: { startMs, endMs, count, isPartial }, isContinued }: SessionPart): string {
  const number = `${isPartial ? 'at least ' : ''}${formatCount(count, 'event')}`;
  const length = count === 1 ? '' : `, ${formatDuration((endMs - startMs) / 1_000)}`;
  const { date, time } = clocks.value;
  const began = isContinued ? `${date.format(startMs)}, ` : '';
  const times = count === 1 ? time.format(startMs) : `${time.format(startMs)} to ${time.format(endMs)}`;
  return `Session from ${began}${times}: ${number}${length}`;
}

interface TimelineRowProps extends Omit<DaysProps, 'filters' | 'hasSessions'> {
  readonly event: Event;
}

function TimelineRow({ path, event, shown, addressOf }: TimelineRowProps) {
  const { members } = ENTITY_KINDS[path];
  const other = path === 'users' ? event.groupId : event.userId;
  return (
    <li class={event.uuid === shown ? 'shown' : undefined}>
      <time dateTime={event.timestamp} title={event.timestamp}>
        {clocks.value.time.format(new Date(event.timestamp))}
      </time>
      <EventLink {...{ event, shown, addressOf }} />
      {other !== null && <EntityLink path={members} id={other} />}
      <span class="line">
        <PropertyLine properties={event.properties} />
      </span>
    </li>
  );
}

import { useLayoutEffect, useRef } from 'preact/hooks';
import { type Event, type EventPage, getRecords, hrefOf, ingestUrl } from '../base/base.ts';
import { CopyButton, LoadState, Time, useLoad } from '../parts/parts.ts';
import { curlOf } from './event-curl.ts';
import { chartHref, DOCUMENTS, filterHref, type Place } from './value-links.ts';
import { ValueTree } from './value-tree.tsx';

interface EventPanelProps {
  readonly uuid: string;
  /** The events of the list beside it, in its order. */
  readonly events: readonly Event[];
  /** The parameters of the list. */
  readonly filters: URLSearchParams;
  /** Shows another event; without a uuid it closes. */
  readonly onShow: (uuid?: string) => void;
}

/** An event beside its list, with all that it holds. It has the focus when it opens. */
export function EventPanel({ uuid, events, filters, onShow }: EventPanelProps) {
  const panel = useRef<HTMLElement>(null);
  const listed = events.find((event) => event.uuid === uuid);
  const index = events.findIndex((event) => event.uuid === uuid);
  const [before, after] = [events[index - 1], index < 0 ? undefined : events[index + 1]];
  const loaded = useLoad(listed ? '' : uuid, async (signal) => {
    if (listed) return undefined;
    const query = new URLSearchParams({ uuid, limit: '1', total: 'none' });
    return (await getRecords<EventPage>(`events?${query}`, signal)).results[0];
  });
  const { data, error, isLoading, isStopped } = loaded;
  const event = listed ?? (data?.uuid === uuid ? data : undefined);
  // At once: a later effect would take the focus from what a quick user has reached by then.
  useLayoutEffect(() => panel.current?.focus(), [uuid]);
  // At once, too: a key that is pressed before a later effect would get lost, or go on from the event before.
  useLayoutEffect(() => {
    const onKey = (pressed: KeyboardEvent) => {
      if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || isTyped(pressed.target)) return;
      const next = { ArrowUp: before, ArrowDown: after }[pressed.key];
      if (pressed.key !== 'Escape' && !next) return;
      pressed.preventDefault();
      onShow(next?.uuid);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
  return (
    <section class="event-panel" aria-label="Event" tabIndex={-1} ref={panel}>
      <div class="bar">
        <h2>{event ? <bdi>{event.event}</bdi> : 'Event'}</h2>
        <button type="button" disabled={!before} onClick={() => onShow(before?.uuid)}>
          Previous<span class="hidden"> event</span>
        </button>
        <button type="button" disabled={!after} onClick={() => onShow(after?.uuid)}>
          Next<span class="hidden"> event</span>
        </button>
        <button type="button" onClick={() => onShow()}>
          Close
        </button>
      </div>
      {!event && <LoadState loaded={loaded} />}
      {!event && !isLoading && !isStopped && !error && (
        <p class="notice">
          There is no event with the uuid {uuid}. It may not be stored yet, it may have expired, or its user was
          deleted.
        </p>
      )}
      {event && <EventDetails key={uuid} event={event} filters={filters} />}
    </section>
  );
}

/** Whether a key is text for a field. */
function isTyped(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('input, select, textarea');
}

function EventDetails({ event, filters }: { readonly event: Event; readonly filters: URLSearchParams }) {
  const { uuid, type, timestamp, receivedAt, userId, groupId, anonymousId, instanceId } = event;
  return (
    <>
      <p class="bar">
        <CopyButton label="Copy as JSON" textOf={() => JSON.stringify(event, null, 2)} />
        <CopyButton label="Copy as curl" textOf={() => curlOf(event, ingestUrl())} />
      </p>
      <dl class="facts">
        <dt>Time</dt>
        <dd>
          <Time value={timestamp} full />
        </dd>
        <dt>Received</dt>
        <dd>
          <Time value={receivedAt} full />
        </dd>
        <dt>Type</dt>
        <dd>{type}</dd>
        <Fact term="User" value={userId} href={userId === null ? undefined : hrefOf(['users', userId])} />
        <Fact
          term="Organization"
          value={groupId}
          href={groupId === null ? undefined : hrefOf(['organizations', groupId])}
        />
        <Fact term="Anonymous person" value={anonymousId} />
        <Fact term="Installation or device" value={instanceId} />
        <Fact term="uuid" value={uuid} />
      </dl>
      {DOCUMENTS.map((document) => (
        <section key={document} aria-labelledby={`event-${document}`}>
          <h3 id={`event-${document}`}>{TITLES[document]}</h3>
          {Object.keys(event[document]).length === 0 ? (
            <p class="muted">None.</p>
          ) : (
            <ValueTree
              value={event[document]}
              place={{ document, names: [] }}
              actionsOf={(place, value) => <Actions {...{ event, filters, place, value }} />}
            />
          )}
        </section>
      ))}
    </>
  );
}

const TITLES = { properties: 'Properties', context: 'Context', traits: 'Traits' } as const;

interface FactProps {
  readonly term: string;
  readonly value: string | null;
  readonly href?: string | undefined;
}

function Fact({ term, value, href }: FactProps) {
  if (value === null) return null;
  const text = <bdi>{value}</bdi>;
  return (
    <>
      <dt>{term}</dt>
      <dd>{href === undefined ? text : <a href={href}>{text}</a>}</dd>
    </>
  );
}

interface ActionsProps {
  readonly event: Event;
  readonly filters: URLSearchParams;
  readonly place: Place;
  readonly value: unknown;
}

/** Links that filter by a value and chart its property. Where no parameter can name the value, there are none. */
function Actions({ event, filters, place, value }: ActionsProps) {
  const [filter, chart] = [filterHref(filters, place, value), chartHref(event.event, place, value)];
  const name = place.names.join('.');
  return (
    <>
      {filter !== undefined && (
        <a href={filter}>
          Filter<span class="hidden"> by this value of {name}</span>
        </a>
      )}
      {chart !== undefined && (
        <a href={chart}>
          Chart<span class="hidden"> the property {name}</span>
        </a>
      )}
    </>
  );
}

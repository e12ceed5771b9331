import { CircleAlert } from 'lucide';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { type Event, hrefOf } from '../base/base.ts';
import { deferred, EntityLink, Icon, PropertyLine, Scrollable, Time } from '../parts/parts.ts';

const EventPanel = deferred(() => import('./event-panel.tsx').then(({ EventPanel }) => EventPanel));

interface EventListProps {
  readonly events: readonly Event[];
  /** The parameters of the list; its address has `show`, the uuid of an event that is open beside it, as well. */
  readonly filters: URLSearchParams;
  readonly shown: string | null;
  /** Returns the address of the list with an event open beside it, or with none. */
  readonly addressOf: (uuid?: string) => string;
  /** The list: its links to events are of {@link EventLink}. */
  readonly children: ComponentChildren;
}

/** A list of events, and the one that is open beside it: on a narrow page, above its end. */
export function EventList({ events, filters, shown, addressOf, children }: EventListProps) {
  const list = useRef<HTMLDivElement>(null);
  const show = (uuid?: string) => {
    if (uuid === undefined) focusLink(list.current, shown);
    // Back leaves the list: whoever has looked at ten events does not want to see them all again.
    location.replace(addressOf(uuid));
  };
  return (
    <div class={shown === null ? undefined : 'beside'}>
      <div ref={list}>{children}</div>
      {shown !== null && <EventPanel uuid={shown} events={events} filters={filters} onShow={show} />}
    </div>
  );
}

function focusLink(list: HTMLElement | null, uuid: string | null): void {
  const links = [...(list?.querySelectorAll<HTMLElement>('[data-event]') ?? [])];
  (links.find((link) => link.dataset['event'] === uuid) ?? document.getElementById('main'))?.focus();
}

interface EventLinkProps {
  readonly event: Event;
  readonly shown: string | null;
  readonly addressOf: (uuid?: string) => string;
}

/** What is said of something that went wrong. */
const ERROR_NAME = /error|exception|fail|crash/i;

/** The name of an event, which opens it; that of an error is marked. */
export function EventLink({ event, shown, addressOf }: EventLinkProps) {
  return (
    <a href={addressOf(event.uuid)} data-event={event.uuid} aria-current={event.uuid === shown ? 'true' : undefined}>
      {ERROR_NAME.test(event.event) && <Icon of={CircleAlert} />}
      <bdi>{event.event}</bdi>
    </a>
  );
}

/** Most events are of this type, which is said where others are among them. */
const USUAL_TYPE = 'track';

/** Returns which columns say something that is not the same in each row. */
function columnsOf(events: readonly Event[]) {
  return {
    type: events.some(({ type }) => type !== USUAL_TYPE),
    user: events.some(({ userId }) => userId !== null),
    organization: events.some(({ groupId }) => groupId !== null),
  };
}

interface EventTableProps {
  readonly events: readonly Event[];
  readonly caption: string;
  /** The uuid of the event that is open beside the table. */
  readonly shown?: string | null;
  /** Returns the address that opens an event. Default: beside the list of all events. */
  readonly addressOf?: (uuid?: string) => string;
}

/** Events, one a row. The name of each opens it. */
export function EventTable({ events, caption, shown = null, addressOf = besideAll }: EventTableProps) {
  const columns = columnsOf(events);
  const titles = [
    ...['Time', 'Event'],
    ...(columns.type ? ['Type'] : []),
    ...(columns.user ? ['User'] : []),
    ...(columns.organization ? ['Organization'] : []),
    'Properties',
  ];
  return (
    <Scrollable label={caption}>
      <table class="events">
        <caption>{caption}</caption>
        <thead>
          <tr>
            {titles.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <tr key={event.uuid} class={event.uuid === shown ? 'shown' : undefined}>
              <td>
                <Time value={event.timestamp} />
              </td>
              <th scope="row">
                <EventLink event={event} shown={shown} addressOf={addressOf} />
              </th>
              {columns.type && <td>{event.type}</td>}
              {columns.user && <td>{event.userId !== null && <EntityLink path="users" id={event.userId} />}</td>}
              {columns.organization && (
                <td>{event.groupId !== null && <EntityLink path="organizations" id={event.groupId} />}</td>
              )}
              <td class="line">
                <PropertyLine properties={event.properties} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function besideAll(uuid?: string): string {
  return hrefOf(['events'], uuid === undefined ? undefined : new URLSearchParams({ show: uuid }));
}

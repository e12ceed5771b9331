import { CircleAlert } from 'lucide';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { type Event, hrefOf } from '../base/base.ts';
import {
  type Column,
  deferred,
  EntityLink,
  Icon,
  ListTable,
  PropertyLine,
  PropertyText,
  propertyColumns,
  propertyOfColumn,
  Time,
} from '../parts/parts.ts';

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

/** Returns the columns beside the time and the name: those that say something that is not the same in each row, and properties. */
function columnsOf(events: readonly Event[], filters: URLSearchParams): readonly Column[] {
  const isFiltered = (field: string) => filters.has(field) || filters.has(`${field}[eq]`);
  const columns = [
    { id: 'type', title: 'Type', isUseful: events.some(({ type }) => type !== USUAL_TYPE) && !isFiltered('type') },
    { id: 'userId', title: 'User', isUseful: events.some(({ userId }) => userId !== null) && !isFiltered('userId') },
    {
      ...{ id: 'groupId', title: 'Organization' },
      isUseful: events.some(({ groupId }) => groupId !== null) && !isFiltered('groupId'),
    },
  ];
  const useful = columns.filter(({ isUseful }) => isUseful).map(({ id, title }) => ({ id, title }));
  const properties = propertyColumns(events);
  return [...useful, ...(properties.length > 0 ? [{ id: 'properties', title: 'Properties' }] : []), ...properties];
}

interface EventTableProps {
  readonly events: readonly Event[];
  readonly caption: string;
  /** The filters of the list: what is the same for all of it has no column. Default: none. */
  readonly filters?: URLSearchParams;
  /** The uuid of the event that is open beside the table. */
  readonly shown?: string | null;
  /** Returns the address that opens an event. Default: beside the list of all events. */
  readonly addressOf?: (uuid?: string) => string;
}

const NO_FILTERS = new URLSearchParams();

/** Events, one a row. The name of each opens it. */
export function EventTable({
  events,
  caption,
  filters = NO_FILTERS,
  shown = null,
  addressOf = besideAll,
}: EventTableProps) {
  return (
    <ListTable
      list="events"
      caption={caption}
      leading={['Time', 'Event']}
      columns={columnsOf(events, filters)}
      items={events}
      rowOf={(event) => ({
        key: event.uuid,
        isShown: event.uuid === shown,
        leading: (
          <>
            <td>
              <Time value={event.timestamp} />
            </td>
            <th scope="row">
              <EventLink event={event} shown={shown} addressOf={addressOf} />
            </th>
          </>
        ),
      })}
      cellOf={(event, column) => <EventCell column={column} event={event} />}
    />
  );
}

function EventCell({ column, event }: { readonly column: Column; readonly event: Event }) {
  const property = propertyOfColumn(column);
  if (property !== undefined) return <PropertyText value={event.properties[property]} />;
  switch (column.id) {
    case 'type':
      return <>{event.type}</>;
    case 'userId':
      return event.userId === null ? null : <EntityLink path="users" id={event.userId} />;
    case 'groupId':
      return event.groupId === null ? null : <EntityLink path="organizations" id={event.groupId} />;
  }
  return <PropertyLine properties={event.properties} />;
}

function besideAll(uuid?: string): string {
  return hrefOf(['events'], uuid === undefined ? undefined : new URLSearchParams({ show: uuid }));
}

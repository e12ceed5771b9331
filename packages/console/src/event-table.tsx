import { type Event, hrefOf } from './base/base.ts';
import { EventLink } from './event-list.tsx';
import { Beginning, EntityLink, Time } from './parts/parts.ts';

const COLUMNS = ['Time', 'Event', 'Type', 'User', 'Organization', 'Properties'] as const;

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
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="scroll" aria-label={caption} tabIndex={0}>
      <table class="events">
        <caption>{caption}</caption>
        <thead>
          <tr>
            {COLUMNS.map((column) => (
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
              <td>{event.type}</td>
              <td>{event.userId !== null && <EntityLink path="users" id={event.userId} />}</td>
              <td>{event.groupId !== null && <EntityLink path="organizations" id={event.groupId} />}</td>
              <td class="json">
                <Beginning value={event.properties} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function besideAll(uuid?: string): string {
  return hrefOf(['events'], uuid === undefined ? undefined : new URLSearchParams({ show: uuid }));
}

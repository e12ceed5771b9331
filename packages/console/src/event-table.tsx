import { useMemo } from 'preact/hooks';
import type { Event } from './api.ts';
import { EventLink } from './event-list.tsx';
import { hrefOf } from './route.ts';
import { Time } from './time.tsx';

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

interface EntityLinkProps {
  readonly path: 'users' | 'organizations';
  readonly id: string;
}

/** The identifier of a user or an organization, in the direction of its own script, which leads to its page. */
export function EntityLink({ path, id }: EntityLinkProps) {
  return (
    <a href={hrefOf([path, id])}>
      <bdi>{id}</bdi>
    </a>
  );
}

/** The beginning of a value as JSON. */
export function Beginning({ value }: { readonly value: unknown }) {
  return <>{useMemo(() => beginningOf(JSON.stringify(value)), [value])}</>;
}

/** How much of a value a cell shows, in characters. */
const SHOWN_MAX = 1_000;

/** Returns a text, or the beginning of a long one. */
export function beginningOf(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)} …` : text;
}

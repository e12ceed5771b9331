import { useState } from 'preact/hooks';
import type { Event } from './api.ts';
import { hrefOf } from './route.ts';
import { Time } from './time.tsx';

const COLUMNS = ['Time', 'Event', 'Type', 'User', 'Organization', 'Properties', 'Details'] as const;

/** Events, one a row. Each can show its whole record below. */
export function EventTable({ events, caption }: { readonly events: readonly Event[]; readonly caption: string }) {
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
            <EventRow key={event.uuid} event={event} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function EventRow({ event }: { readonly event: Event }) {
  const [isOpen, setIsOpen] = useState(false);
  const id = `event-${event.uuid}`;
  return (
    <>
      <tr>
        <td>
          <Time value={event.timestamp} />
        </td>
        <th scope="row">{event.event}</th>
        <td>{event.type}</td>
        <td>{event.userId !== null && <a href={hrefOf(['users', event.userId])}>{event.userId}</a>}</td>
        <td>{event.groupId !== null && <a href={hrefOf(['organizations', event.groupId])}>{event.groupId}</a>}</td>
        <td class="json">{beginningOf(JSON.stringify(event.properties))}</td>
        <td>
          <button type="button" aria-expanded={isOpen} aria-controls={id} onClick={() => setIsOpen(!isOpen)}>
            JSON<span class="hidden"> of {event.event}</span>
          </button>
        </td>
      </tr>
      <tr id={id} hidden={!isOpen}>
        <td colSpan={COLUMNS.length}>{isOpen && <pre>{JSON.stringify(event, null, 2)}</pre>}</td>
      </tr>
    </>
  );
}

/** How much of a value a cell shows, in characters. */
const SHOWN_MAX = 1_000;

/** Returns a text, or the beginning of a long one. */
export function beginningOf(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)} …` : text;
}

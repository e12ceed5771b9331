import { REPEATED_WITHIN_MS } from '@sluice/storage/protocol/repeats';
import type { Both } from './different-keys.ts';

/** An event that a server shows: no deletion hides it. */
export interface ShownEvent {
  readonly workspace: string;
  readonly uuid: string;
  /** Its timestamp, in milliseconds since 1970. */
  readonly timeMs: number;
  /** When it was accepted, in microseconds since 1970. */
  readonly receivedUs: number;
  /** The same for the same event, and another for each other one. */
  readonly content: string;
}

/** What makes two servers show the same. */
export interface Mending<Event> {
  /** One of the servers lacks them. `isStamped`: they are sent as events that came without a timestamp. */
  readonly send: readonly { readonly event: Event; readonly isStamped: boolean }[];
  /** What each server shows beside an event that it repeats. */
  readonly remove: Both<readonly Event[]>;
}

/**
 * Decides what two servers have to show, which were fed from one log and differ in events that were sent again around the
 * deletion of their first user. Each event that one of them shows was accepted, and nothing deletes it, so both have to show
 * it. Only of those that repeat each other one stays: one that both have, otherwise the one that was accepted first.
 *
 * @param shown all events of some uuids that each of them shows
 */
export function planMending<Event extends ShownEvent>([one, other]: Both<readonly Event[]>): Mending<Event> {
  const identityOf = ({ workspace, uuid }: ShownEvent) => JSON.stringify([workspace, uuid]);
  const [mine, theirs] = [Map.groupBy(one, identityOf), Map.groupBy(other, identityOf)];
  const plans = [...new Set([...mine.keys(), ...theirs.keys()])].map((identity) =>
    planIdentity([mine.get(identity) ?? [], theirs.get(identity) ?? []]),
  );
  return {
    send: plans.flatMap(({ send }) => send),
    remove: [plans.flatMap(({ remove }) => remove[0]), plans.flatMap(({ remove }) => remove[1])],
  };
}

function planIdentity<Event extends ShownEvent>(shown: Both<readonly Event[]>): Mending<Event> {
  const contents = shown.map((events) => new Set(events.map(({ content }) => content)));
  const shows = (index: 0 | 1, { content }: Event) => contents[index]?.has(content) === true;
  const isOnBoth = (event: Event) => shows(0, event) && shows(1, event);
  // A server that shows both has found that neither repeats the other one.
  const areTogether = (one: Event, other: Event) =>
    ([0, 1] as const).some((index) => shows(index, one) && shows(index, other));
  const all = [...new Map(shown.flat().map((event) => [event.content, event])).values()].sort(
    (one, other) =>
      Number(isOnBoth(other)) - Number(isOnBoth(one)) ||
      one.receivedUs - other.receivedUs ||
      (one.content < other.content ? -1 : 1),
  );
  const kept: Event[] = [];
  for (const event of all) {
    const isRepeat = kept.some(
      (earlier) => earlier.timeMs === event.timeMs || (!areTogether(earlier, event) && isNear(earlier, event)),
    );
    if (!isRepeat) kept.push(event);
  }
  const removedFrom = (index: 0 | 1) =>
    shown[index].filter(({ content }) => !kept.some((event) => event.content === content));
  const send = kept
    .filter((event) => !isOnBoth(event))
    .map((event) => ({ event, isStamped: isTimedByReceipt(event) && !kept.some((other) => isNear(event, other)) }));
  return { send, remove: [removedFrom(0), removedFrom(1)] };
}

/** Whether two different events are timed by their receipt, within ten minutes. */
function isNear(one: ShownEvent, other: ShownEvent): boolean {
  if (one.content === other.content || !isTimedByReceipt(one) || !isTimedByReceipt(other)) return false;
  return Math.abs(one.timeMs - other.timeMs) <= REPEATED_WITHIN_MS;
}

/** Each event is that came without a timestamp; another one may be by chance. */
function isTimedByReceipt({ timeMs, receivedUs }: ShownEvent): boolean {
  return timeMs === Math.floor(receivedUs / 1_000);
}

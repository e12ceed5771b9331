import type { EventRow } from '@sluice/shared/rows';
import type { StoredEvent } from '../clickhouse/tables.ts';

/** Within which time a stamped event with the same workspace and uuid is a repeat, in milliseconds. */
const REPEATED_WITHIN_MS = 600_000;

/** What events have in common that may repeat each other. */
export function identityOf({ workspace_id, uuid }: Pick<EventRow, 'workspace_id' | 'uuid'>): string {
  return `${workspace_id}\0${uuid}`;
}

/** Whether an event repeats another one with its identity that comes before it. */
export function repeats(event: EventRow, earlier: EventRow): boolean {
  const isTimedByReceipt = earlier.timestamp === Math.floor(earlier.received_at / 1_000);
  const isNear = areNear(event.timestamp, earlier.timestamp);
  return event.timestamp === earlier.timestamp || (event.stamped === 1 && isTimedByReceipt && isNear);
}

/** Whether two events with one identity cannot both be visible, whichever of them comes first. */
export function areSame(one: EventRow, other: EventRow): boolean {
  const areStamped = one.stamped === 1 && other.stamped === 1;
  return one.timestamp === other.timestamp || (areStamped && areNear(one.timestamp, other.timestamp));
}

/** Whether two timestamps, in milliseconds, are so near that a stamped event may repeat one that is timed by its receipt. */
export function areNear(one: number, other: number): boolean {
  return Math.abs(one - other) <= REPEATED_WITHIN_MS;
}

/** Returns the same text for a row that was sent and the one that is stored of it, and another for each other row. */
export function contentOf(event: EventRow | StoredEvent): string {
  const { user_id = '', group_id = '' } = event;
  const fields = { ...event, user_id, group_id, month: undefined, fast: undefined };
  return JSON.stringify(Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

export function nameOf({ uuid, user_id }: EventRow): string {
  return `event ${uuid.slice(0, 8)} of ${user_id || 'nobody'}`;
}

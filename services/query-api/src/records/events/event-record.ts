import type { Row } from '../../store/store.ts';
import {
  EVENT_COLUMNS,
  EVENT_FIELDS,
  type EventColumnType,
  type EventField,
  type OrderField,
} from './event-columns.ts';
import type { EventSortKey } from './event-order.ts';

/** An event as {@link EVENT_SELECT} reads it: the text of each field. */
export type EventRow = readonly string[];

/** Returns the SELECT list of some fields, in the order of all columns: of the others there is an empty text. */
export function selectOf(selected: (field: EventField) => boolean): string {
  return EVENT_FIELDS.map(([field, { column, type }]) => {
    if (!selected(field)) return `''`;
    return type === 'uuid' || isTime(type) ? `toString(${column})` : column;
  }).join(', ');
}

/** The SELECT list of a page. */
export const EVENT_SELECT = selectOf(() => true);

/** Names the columns of a row that was selected by {@link EVENT_SELECT}. */
export function asEventRow(row: Row): EventRow {
  return row as EventRow;
}

const WRITERS: Readonly<Record<EventColumnType, (text: string) => string>> = {
  uuid: (text) => `"${text}"`,
  text: JSON.stringify,
  identifier: (text) => (text === '' ? 'null' : JSON.stringify(text)),
  json: (text) => text,
  milliseconds: (text) => `"${isoTime(text)}"`,
  microseconds: (text) => `"${isoTime(text)}"`,
};

const MEMBERS = EVENT_FIELDS.map(([field, { type }], index) => ({
  start: `${index === 0 ? '{' : ','}${JSON.stringify(field)}:`,
  write: WRITERS[type],
}));

/**
 * Returns an event's record as JSON. `properties`, `context` and `traits` are the text that was stored, since parsing
 * them could change them.
 */
export function eventRecord(row: EventRow, more?: object): string {
  let json = '';
  let index = 0;
  for (const { start, write } of MEMBERS) {
    json += start + write(row[index] as string);
    index += 1;
  }
  return more ? `${json},${JSON.stringify(more).slice(1)}` : `${json}}`;
}

/** Returns where an event stands in an order by `field`. */
export function sortKeyOf(row: EventRow, field: OrderField): EventSortKey {
  const value = textOf(row, field);
  return {
    value: isTime(EVENT_COLUMNS[field].type) ? Date.parse(isoTime(value)) : value,
    uuid: textOf(row, 'uuid'),
    timestampMs: Date.parse(isoTime(textOf(row, 'timestamp'))),
  };
}

/** Returns when an event was received, in microseconds since 1970. */
export function receivedAtUs(row: EventRow): number {
  const text = textOf(row, 'receivedAt');
  return Date.parse(isoTime(text)) * 1_000 + Number(text.slice(23, 26));
}

/** Returns the text of a field. */
export function textOf(row: EventRow, field: EventField): string {
  return row[EVENT_FIELDS.findIndex(([name]) => name === field)] as string;
}

function isTime(type: EventColumnType): boolean {
  return type === 'milliseconds' || type === 'microseconds';
}

/** Turns a time as ClickHouse writes it into ISO 8601, with three digits of its fraction. */
function isoTime(text: string): string {
  return `${text.slice(0, 10)}T${text.slice(11, 23)}Z`;
}

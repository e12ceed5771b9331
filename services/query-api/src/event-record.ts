import type { EventPosition, OrderField } from './event-order.ts';
import type { Row } from './store.ts';

/** A row of a page, as events-query.ts selects it. An identifier that was not given is empty. Times in milliseconds. */
export type EventPageRow = readonly [
  uuid: string,
  type: string,
  event: string,
  userId: string,
  groupId: string,
  anonymousId: string,
  instanceId: string,
  properties: string,
  context: string,
  traits: string,
  timestampMs: number,
  receivedAtMs: number,
];

/** The columns of a row are those that the query selected. */
export function asEventPageRow(row: Row): EventPageRow {
  return row as unknown as EventPageRow;
}

/**
 * A record as JSON text. `properties`, `context` and `traits` are the text that was stored, unchanged: parsing them here
 * could only alter them.
 */
export function eventRecord(row: EventPageRow): string {
  const [uuid, type, event, userId, groupId, anonymousId, instanceId, properties, context, traits] = row;
  return `{"uuid":"${uuid}","type":${JSON.stringify(type)},"event":${JSON.stringify(event)},"userId":${identifier(userId)},"groupId":${identifier(groupId)},"anonymousId":${identifier(anonymousId)},"instanceId":${identifier(instanceId)},"properties":${properties},"context":${context},"traits":${traits},"timestamp":"${isoTime(row[10])}","receivedAt":"${isoTime(row[11])}"}`;
}

/** Where a row stands in an order by `field`. */
export function positionOf(row: EventPageRow, field: OrderField): EventPosition {
  const [uuid, type, event, userId, groupId, anonymousId, instanceId, , , , timestampMs, receivedAtMs] = row;
  const values: Readonly<Record<OrderField, string | number>> = {
    timestamp: timestampMs,
    receivedAt: receivedAtMs,
    event,
    type,
    userId,
    groupId,
    anonymousId,
    instanceId,
    uuid,
  };
  return { value: values[field], uuid, timestampMs };
}

/** A time in UTC with milliseconds. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function identifier(value: string): string {
  return value === '' ? 'null' : JSON.stringify(value);
}

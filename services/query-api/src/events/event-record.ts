import type { Row } from '../clickhouse/query-runner.ts';
import type { EventPosition, OrderField } from './event-order.ts';

/** A row of a page, as events-query.ts selects it. An identifier that was not given is empty. */
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
  timestamp: string,
  receivedAt: string,
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
  return `{"uuid":"${uuid}","type":${JSON.stringify(type)},"event":${JSON.stringify(event)},"userId":${identifier(userId)},"groupId":${identifier(groupId)},"anonymousId":${identifier(anonymousId)},"instanceId":${identifier(instanceId)},"properties":${properties},"context":${context},"traits":${traits},"timestamp":"${isoText(row[10])}","receivedAt":"${isoText(row[11])}"}`;
}

/** Where a row stands in an order by `field`. */
export function positionOf(row: EventPageRow, field: OrderField): EventPosition {
  const [uuid, type, event, userId, groupId, anonymousId, instanceId, , , , timestamp, receivedAt] = row;
  const timestampMs = Date.parse(isoText(timestamp));
  const values: Readonly<Record<OrderField, string | number>> = {
    timestamp: timestampMs,
    receivedAt: Date.parse(isoText(receivedAt)),
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

/** A time as ClickHouse writes it, with the `T`, the `Z` and three digits of the fraction. */
function isoText(time: string): string {
  return `${time.slice(0, 10)}T${time.slice(11, 23)}Z`;
}

function identifier(value: string): string {
  return value === '' ? 'null' : JSON.stringify(value);
}

import { parseJson } from '@sluice/shared/json';
import type { EventOrder } from '../event-order.ts';
import type { TestEvent } from './query.ts';

/** The record that the API is to answer for a stored event. */
export function expectedRecord(event: TestEvent): Record<string, unknown> {
  return {
    uuid: event.uuid,
    type: event.type,
    event: event.event,
    userId: event.userId || null,
    groupId: event.groupId || null,
    anonymousId: event.anonymousId || null,
    instanceId: event.instanceId || null,
    properties: parseJson(event.properties),
    context: parseJson(event.context),
    traits: parseJson(event.traits),
    timestamp: new Date(event.timestampMs).toISOString(),
    receivedAt: new Date(receivedAtMs(event)).toISOString(),
  };
}

/** Events in the order that the contract promises: the field, then the uuid as text, then the timestamp. */
export function inOrder(events: readonly TestEvent[], { field, direction }: EventOrder): TestEvent[] {
  const sign = direction === 'ASC' ? 1 : -1;
  return events.toSorted(
    (a, b) =>
      sign *
      (compare(fieldOf(a, field), fieldOf(b, field)) ||
        compare(a.uuid, b.uuid) ||
        compare(a.timestampMs, b.timestampMs)),
  );
}

/** Whether a property of `document` that `name` can mean equals `value`, by the contract's words. */
export function hasProperty(document: unknown, name: string, value: string): boolean {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return false;
  const properties = document as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(properties, name) && isWrittenAs(properties[name], value)) return true;
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    const key = name.slice(0, dot);
    if (Object.hasOwn(properties, key) && hasProperty(properties[key], name.slice(dot + 1), value)) return true;
  }
  return false;
}

function isWrittenAs(property: unknown, value: string): boolean {
  return typeof property === 'string' ? property === value : JSON.stringify(property) === value;
}

function fieldOf(event: TestEvent, field: EventOrder['field']): string | number {
  if (field === 'timestamp') return event.timestampMs;
  return field === 'receivedAt' ? receivedAtMs(event) : event[field];
}

function receivedAtMs({ receivedAtUs }: TestEvent): number {
  return Math.floor(receivedAtUs / 1_000);
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

import { parseJson } from '@sluice/shared/text/json';
import type { EventOrder } from '../records/events/event-order.ts';
import type { Comparison, Condition } from '../records/filters/operators.ts';
import { IDENTIFIERS, type TestEvent } from './query-service.ts';

/** Returns the record that the API has to return for a stored event. */
export function expectedRecord(event: TestEvent): Record<string, unknown> {
  return {
    uuid: event.uuid,
    type: event.type,
    event: event.event,
    ...Object.fromEntries(IDENTIFIERS.map((field) => [field, event[field] || null])),
    properties: parseJson(event.properties),
    context: parseJson(event.context),
    traits: parseJson(event.traits),
    timestamp: new Date(event.timestampMs).toISOString(),
    receivedAt: new Date(receivedAtMs(event)).toISOString(),
  };
}

/** Returns the same record where reads see persons, and no visitor is linked. */
export function expectedPersonRecord(event: TestEvent): Record<string, unknown> {
  return { ...expectedRecord(event), linkedUserId: event.userId || null };
}

/** Returns events in the order that the contract promises: the field, then the uuid as text, then the timestamp. */
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

/** Whether a property of `document` that `name` can mean meets a condition, as the contract says it. */
export function meets(document: unknown, name: string, condition: Condition): boolean {
  if (condition.operator === 'ne') return !meets(document, name, { ...condition, operator: 'eq' });
  const values = valuesAt(document, name);
  if (condition.operator === 'exists') return condition.value === values.length > 0;
  return values.some((value) => holds(value, condition));
}

/** Whether a field meets a condition, as the contract says it. A missing field is empty. */
export function fieldMeets(field: string, condition: Condition): boolean {
  if (condition.operator === 'exists') return condition.value === (field !== '');
  const canBeMissing = ['eq', 'ne', 'in'].includes(condition.operator);
  return (canBeMissing || field !== '') && holds(field, condition);
}

/** The values at the places that `name` can mean. */
function valuesAt(document: unknown, name: string): unknown[] {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return [];
  const properties = document as Readonly<Record<string, unknown>>;
  const found = Object.hasOwn(properties, name) ? [properties[name]] : [];
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    const key = name.slice(0, dot);
    if (Object.hasOwn(properties, key)) found.push(...valuesAt(properties[key], name.slice(dot + 1)));
  }
  return found;
}

function holds(property: unknown, { operator, value }: Condition): boolean {
  switch (operator) {
    case 'eq':
      return equals(property, value);
    case 'ne':
      return !equals(property, value);
    case 'exists':
      return value;
    case 'in':
      return value.some((item) => equals(property, item));
    case 'prefix':
      return typeof property === 'string' && property.toWellFormed().startsWith(value);
    case 'contains':
      return typeof property === 'string' && property.toWellFormed().includes(value);
    default: {
      if (typeof property === 'number' && typeof value === 'number') return COMPARE[operator](property - value);
      if (typeof property !== 'string' || typeof value !== 'string') return false;
      return COMPARE[operator](compare(property, value));
    }
  }
}

const COMPARE: Readonly<Record<Comparison, (order: number) => boolean>> = {
  lt: (order) => order < 0,
  lte: (order) => order <= 0,
  gt: (order) => order > 0,
  gte: (order) => order >= 0,
};

/** An array equals a value also when it contains it. */
function equals(property: unknown, value: string): boolean {
  return isSame(property, value) || (Array.isArray(property) && property.some((item) => isSame(item, value)));
}

function isSame(property: unknown, value: string): boolean {
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

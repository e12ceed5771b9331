import { z } from 'zod';
import { EVENT_COLUMNS, type OrderField } from './event-columns.ts';

export interface EventOrder {
  readonly field: OrderField;
  readonly direction: 'ASC' | 'DESC';
}

/**
 * Where a record stands in an order: the value of the order's field, then what decides between equal values. Times are
 * in milliseconds.
 */
export interface EventSortKey {
  readonly value: string | number;
  readonly uuid: string;
  readonly timestampMs: number;
}

/** Returns the schema of a sort key as a cursor holds it. */
export function sortKeySchema({ field }: EventOrder) {
  return z
    .tuple([valueSchema(field), z.guid(), z.int()])
    .transform(([value, uuid, timestampMs]): EventSortKey => ({ value, uuid, timestampMs }));
}

function valueSchema(field: OrderField): z.ZodType<string | number> {
  switch (EVENT_COLUMNS[field].type) {
    case 'uuid':
      return z.uuid();
    case 'text':
    case 'identifier':
      return z.string();
    default:
      return z.int();
  }
}

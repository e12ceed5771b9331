import type { Fault } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { endOfDay } from '@sluice/shared/timestamp';
import { z } from 'zod';
import { decodeCursor } from '../cursor.ts';
import type { FieldFilter } from '../filters/field-filter.ts';
import { OPERATORS, type OperandKind } from '../filters/operators.ts';
import {
  canonical,
  cursorText,
  type Filterable,
  filterBy,
  LIMIT_DEFAULT,
  limitText,
  offsetText,
  parseParameters,
  refuseFaults,
  timestampText,
  uuidText,
} from '../filters/parameters.ts';
import { DOCUMENTS, type PropertyFilter } from '../filters/property-filter.ts';
import { type EventOrder, type EventPosition, ORDER_FIELDS, positionSchema } from './event-order.ts';

/** The parameters of `GET /events`, besides those of properties and operators. */
export const eventParameters = {
  event: filterBy('Events of this name.'),
  uuid: uuidText,
  type: filterBy('Events of this type.'),
  userId: filterBy('Events of this user.'),
  groupId: filterBy('Events of this organization.'),
  anonymousId: filterBy('Events with this anonymous identifier.'),
  instanceId: filterBy('Events of this installation or device.'),
  startDate: timestampText(
    (dayMs) => dayMs,
    'Events from this time on. ISO 8601, in UTC without a zone; a date alone is its first millisecond.',
  ),
  endDate: timestampText(
    endOfDay,
    'Events up to and with this time. ISO 8601, in UTC without a zone; a date alone is its last millisecond.',
  ),
  limit: limitText,
  offset: offsetText,
  orderByField: z.enum(ORDER_FIELDS, `must be one of ${ORDER_FIELDS.join(', ')}`).meta({
    default: 'timestamp',
    description: 'Text is ordered by its UTF-8 bytes, a missing value is the smallest, `uuid` decides between equals.',
  }),
  orderByDirection: z
    .string()
    .toUpperCase()
    .pipe(z.enum(['ASC', 'DESC'], 'must be ASC or DESC'))
    .meta({ enum: ['ASC', 'DESC'], default: 'DESC', description: 'In any case of letters.' }),
  cursor: cursorText('filters and order; not together with `offset`'),
  total: z
    .enum(['exact', 'none'], 'must be exact or none')
    .meta({ default: 'exact', description: '`none` skips the count.' }),
} as const;

const text = { item: z.string(), typed: false };
const identifier: OperandKind = { ...text, operators: OPERATORS };
const alwaysThere: OperandKind = { ...text, operators: OPERATORS.filter((operator) => operator !== 'exists') };

/** What can be filtered by with operators. */
export const eventFilterable = {
  fields: {
    event: alwaysThere,
    uuid: { operators: ['eq', 'ne', 'in'], item: uuidText, typed: false },
    type: alwaysThere,
    userId: identifier,
    groupId: identifier,
    anonymousId: identifier,
    instanceId: identifier,
  },
  documents: DOCUMENTS,
} as const satisfies Filterable<string>;

export type EventField = keyof typeof eventFilterable.fields;

/** A valid question for events. Times in milliseconds, inclusive. */
export interface EventsRequest {
  readonly fields: readonly FieldFilter<EventField>[];
  readonly properties: readonly PropertyFilter[];
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
  readonly order: EventOrder;
  readonly limit: number;
  readonly offset: number;
  readonly after: EventPosition | undefined;
  readonly counted: boolean;
  /** What defines the list that a cursor belongs to. */
  readonly list: unknown;
}

/**
 * Reads the query of `GET /events`.
 *
 * @throws {Problem} `invalid_request`, naming every fault
 */
export function parseEventsRequest(query: QueryParameters, workspace: string): EventsRequest {
  const { values, fields, properties, faults } = parseParameters(eventParameters, eventFilterable, query);
  const found: Fault[] = [...faults];
  const { startDate: startMs, endDate: endMs, cursor } = values;
  if (startMs !== undefined && endMs !== undefined && startMs > endMs) {
    found.push({ path: 'startDate', code: 'invalid', message: 'must not be after endDate' });
  }
  if (query['cursor'] && query['offset']) {
    found.push({ path: 'offset', code: 'invalid', message: 'cannot be combined with cursor' });
  }
  const order: EventOrder = { field: values.orderByField ?? 'timestamp', direction: values.orderByDirection ?? 'DESC' };
  const list = ['events', workspace, canonical([...fields, ...properties]), startMs, endMs, order];
  // With a fault in a filter or the order there is no list that the cursor could be of.
  const after =
    cursor !== undefined && found.length === 0 ? decodeCursor(cursor, list, positionSchema(order)) : undefined;
  if (cursor !== undefined && found.length === 0 && after === undefined) {
    found.push({
      path: 'cursor',
      code: 'invalid',
      message: 'is not a cursor of this list, with these filters and order',
    });
  }
  refuseFaults(found);
  return {
    fields,
    properties,
    startMs,
    endMs,
    order,
    limit: values.limit ?? LIMIT_DEFAULT,
    offset: values.offset ?? 0,
    after,
    counted: values.total !== 'none',
    list,
  };
}

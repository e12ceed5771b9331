import { OPERATORS, type Operator } from '../filters/operators.ts';

/**
 * How a column holds the values of a field:
 * - `uuid`: a UUID
 * - `text`: text that every event has
 * - `identifier`: text that an event may lack; then it is the empty string in the column, and `null` in a record
 * - `json`: the text of a JSON object, as it was submitted
 * - `milliseconds`, `microseconds`: a time of that precision; records have milliseconds
 */
export type EventColumnType = 'uuid' | 'text' | 'identifier' | 'json' | 'milliseconds' | 'microseconds';

export interface EventColumn {
  /** The name of the column in the table `events`. */
  readonly column: string;
  readonly type: EventColumnType;
  /**
   * The parameter that filters by the field, and its operators. A `json` field has one parameter per property instead.
   */
  readonly filter?: { readonly operators: readonly Operator[]; readonly description: string };
  /** Whether `orderByField` may name the field. */
  readonly ordered: boolean;
  /** The field in OpenAPI. */
  readonly description?: string;
  readonly example: unknown;
}

/**
 * The fields of an event, in the order of a record. Parameters, filters, order, the SELECT list, records and OpenAPI
 * are derived from this table: a new identifier is one entry here.
 */
export const EVENT_COLUMNS = {
  uuid: {
    column: 'uuid',
    type: 'uuid',
    filter: { operators: ['eq', 'ne', 'in'], description: 'Events with this uuid.' },
    ordered: true,
    example: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002',
  },
  type: text('type', 'Events of this type.', 'track'),
  event: text('event', 'Events of this name.', 'signed_up'),
  userId: identifier('user_id', 'Events of this user.', 'jane'),
  groupId: identifier('group_id', 'Events of this organization.', 'acme'),
  anonymousId: identifier('anonymous_id', 'Events with this anonymous identifier.', null),
  instanceId: identifier('instance_id', 'Events of this installation or device.', null),
  properties: {
    column: 'properties',
    type: 'json',
    ordered: false,
    description: 'Equal, as JSON, to what was submitted.',
    example: { plan: 'pro' },
  },
  context: { column: 'context', type: 'json', ordered: false, example: {} },
  traits: { column: 'traits', type: 'json', ordered: false, example: {} },
  timestamp: { column: 'timestamp', type: 'milliseconds', ordered: true, example: '2026-03-01T12:00:00.000Z' },
  receivedAt: { column: 'received_at', type: 'microseconds', ordered: true, example: '2026-03-01T12:00:01.250Z' },
} as const satisfies Readonly<Record<string, EventColumn>>;

type EventColumns = typeof EVENT_COLUMNS;

/** The fields whose column has a shape. */
export type FieldsLike<Shape> = {
  [Field in keyof EventColumns]: EventColumns[Field] extends Shape ? Field : never;
}[keyof EventColumns];

export type EventField = keyof EventColumns;

/** A field that a parameter filters by. */
export type FilterField = FieldsLike<{ readonly filter: object }>;

/** A field that `orderByField` may name. */
export type OrderField = FieldsLike<{ readonly ordered: true }>;

/** A field that holds a JSON object; `<document>.<name>` filters by its properties. */
export type DocumentField = FieldsLike<{ readonly type: 'json' }>;

/** The name and the column of every field. */
export const EVENT_FIELDS = Object.entries(EVENT_COLUMNS) as readonly (readonly [EventField, EventColumn])[];

export const FILTER_FIELDS = fieldsWith(({ filter }) => filter !== undefined) as readonly FilterField[];

export const ORDER_FIELDS = fieldsWith(({ ordered }) => ordered) as readonly [OrderField, ...OrderField[]];

export const DOCUMENT_FIELDS = fieldsWith(({ type }) => type === 'json') as readonly DocumentField[];

function fieldsWith(holds: (column: EventColumn) => boolean): readonly EventField[] {
  return EVENT_FIELDS.filter(([, column]) => holds(column)).map(([field]) => field);
}

function text<const Name extends string>(column: Name, filterDescription: string, example: string) {
  // Every event has it, so there is no `exists`.
  const operators = OPERATORS.filter((operator) => operator !== 'exists');
  return {
    column,
    type: 'text',
    filter: { operators, description: filterDescription },
    ordered: true,
    example,
  } as const;
}

function identifier<const Name extends string>(column: Name, filterDescription: string, example: string | null) {
  const filter = { operators: OPERATORS, description: filterDescription };
  return { column, type: 'identifier', filter, ordered: true, example } as const;
}

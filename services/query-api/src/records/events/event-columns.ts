import { EVENT_IDENTIFIERS } from '@sluice/shared/rows/event-identifiers';
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
  /** Whether reports can group by the field. */
  readonly grouped: boolean;
  /** The field in OpenAPI. */
  readonly description?: string;
  readonly example: unknown;
}

/** The columns of {@link EVENT_IDENTIFIERS}. */
const IDENTIFIERS = Object.fromEntries(
  EVENT_IDENTIFIERS.map(({ field, column, grouped, identifies }) => [
    field,
    identifier(column, { grouped, identifies, example: null }),
  ]),
) as {
  readonly [Entry in (typeof EVENT_IDENTIFIERS)[number] as Entry['field']]: ReturnType<
    typeof identifier<Entry['column'], Entry['grouped']>
  >;
};

/**
 * The fields of an event, in the order of a record. Parameters, filters, order, groups, the SELECT list, records and
 * OpenAPI are derived from this table.
 */
export const EVENT_COLUMNS = {
  uuid: {
    column: 'uuid',
    type: 'uuid',
    filter: { operators: ['eq', 'ne', 'in'], description: 'Events with this uuid.' },
    ordered: true,
    grouped: false,
    example: '018f3c5e-7b1a-7cc0-9d5e-0242ac120002',
  },
  type: text('type', 'Events of this type.', 'track'),
  event: text('event', 'Events of this name.', 'signed_up'),
  userId: identifier('user_id', { grouped: true, identifies: 'user', example: 'jane' }),
  groupId: identifier('group_id', { grouped: true, identifies: 'organization', example: 'acme' }),
  ...IDENTIFIERS,
  properties: {
    column: 'properties',
    type: 'json',
    ordered: false,
    grouped: false,
    description: 'Equal, as JSON, to what was submitted.',
    example: { plan: 'pro' },
  },
  context: { column: 'context', type: 'json', ordered: false, grouped: false, example: {} },
  traits: { column: 'traits', type: 'json', ordered: false, grouped: false, example: {} },
  timestamp: {
    column: 'timestamp',
    type: 'milliseconds',
    ordered: true,
    grouped: false,
    example: '2026-03-01T12:00:00.000Z',
  },
  receivedAt: {
    column: 'received_at',
    type: 'microseconds',
    ordered: true,
    grouped: false,
    example: '2026-03-01T12:00:01.250Z',
  },
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

/** A field of text that reports can group by. */
export type GroupField = FieldsLike<{ readonly grouped: true }>;

/** A field that holds a JSON object; `<document>.<name>` filters by its properties. */
export type DocumentField = FieldsLike<{ readonly type: 'json' }>;

/** The name and the column of every field. */
export const EVENT_FIELDS = Object.entries(EVENT_COLUMNS) as readonly (readonly [EventField, EventColumn])[];

/** The record of an event. */
export const EVENT_EXAMPLE: Readonly<Record<string, unknown>> = Object.fromEntries(
  EVENT_FIELDS.map(([field, { example }]) => [field, example]),
);

export const FILTER_FIELDS = fieldsWith(({ filter }) => filter !== undefined) as readonly FilterField[];

export const ORDER_FIELDS = fieldsWith(({ ordered }) => ordered) as readonly [OrderField, ...OrderField[]];

export const GROUP_FIELDS = fieldsWith(({ grouped }) => grouped) as readonly GroupField[];

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
    grouped: true,
    example,
  } as const;
}

function identifier<const Name extends string, const Grouped extends boolean>(
  column: Name,
  { grouped, identifies, example }: { grouped: Grouped; identifies: string; example: string | null },
) {
  const filter = { operators: OPERATORS, description: `Events of this ${identifies}.` };
  const description = `The identifier of the ${identifies}.`;
  return { column, type: 'identifier', filter, ordered: true, grouped, description, example } as const;
}

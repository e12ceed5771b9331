import type { InputError } from '@sluice/shared/http/problem';
import { endOfDay } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { shownConditions } from '../../store/deletions/hidden-events.ts';
import { type Sql, where } from '../../store/sql.ts';
import { eventPropertyCondition, fieldCondition, type TimeRange, timeConditions } from '../filters/filter-sql.ts';
import type { FieldFilter, OperandKind } from '../filters/operators.ts';
import { textParameter, timestampParameter, uuidParameter } from '../filters/parameter-schemas.ts';
import type { Filterable } from '../filters/parameters.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import {
  DOCUMENT_FIELDS,
  type DocumentField,
  EVENT_COLUMNS,
  FILTER_FIELDS,
  type FilterField,
} from './event-columns.ts';

/** Which events a request is about. Times in milliseconds, inclusive. */
export interface EventSelection extends TimeRange {
  readonly fields: readonly FieldFilter<FilterField>[];
  readonly properties: readonly PropertyFilter<DocumentField>[];
}

/** The parameters that select events, except those of properties and operators. */
export const selectionParameters = {
  ...byFilterField((field) => {
    const { type, filter } = EVENT_COLUMNS[field];
    return type === 'uuid' ? uuidParameter(filter.description) : textParameter(filter.description);
  }),
  startDate: timestampParameter(
    (dayMs) => dayMs,
    'Events from this time on. ISO 8601, in UTC without a zone; a date alone is its first millisecond.',
  ),
  endDate: timestampParameter(
    endOfDay,
    'Events up to and with this time. ISO 8601, in UTC without a zone; a date alone is its last millisecond.',
  ),
} as const;

/** What events can be filtered by. */
export const eventFilterable: Filterable<FilterField, DocumentField> = {
  fields: byFilterField((field): OperandKind => {
    const { type, filter } = EVENT_COLUMNS[field];
    const item = type === 'uuid' ? uuidParameter(filter.description) : z.string();
    return { operators: filter.operators, item, typed: false };
  }),
  documents: DOCUMENT_FIELDS,
};

export const START_AFTER_END: InputError = { path: 'startDate', code: 'invalid', message: 'must not be after endDate' };

function byFilterField<Value>(create: (field: FilterField) => Value): Readonly<Record<FilterField, Value>> {
  return Object.fromEntries(FILTER_FIELDS.map((field) => [field, create(field)])) as Record<FilterField, Value>;
}

/**
 * Returns the conditions of the filters alone, without the dates.
 *
 * @param prefix begins the names of their parameters: it tells the filters of several selections in one query apart
 */
export function filterConditions(
  { fields, properties }: Pick<EventSelection, 'fields' | 'properties'>,
  prefix = '',
): readonly Sql[] {
  return [
    ...fields.map(({ field, condition }) =>
      fieldCondition({ field: `${prefix}${field}`, condition }, EVENT_COLUMNS[field]),
    ),
    ...properties.map((filter, index) =>
      eventPropertyCondition(filter, EVENT_COLUMNS[filter.document].column, `${prefix}p${index}`),
    ),
  ];
}

/** Returns the conditions that the selected events meet, hidden ones among them. */
export function selectionConditions(selection: EventSelection): readonly Sql[] {
  return [...filterConditions(selection), ...timeConditions(selection)];
}

/** Returns the WHERE of the selected events that are not hidden, and `more` conditions. */
export function whereSelected(selection: EventSelection, hidden: Sql | undefined, more: readonly Sql[] = []): Sql {
  return where([...selectionConditions(selection), ...more, ...shownConditions(hidden)]);
}

import type { InputError } from '@sluice/shared/http/problem';
import { endOfDay } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { type Sql, shownConditions, type Tables, where } from '../../store/store.ts';
import { eventPropertyCondition, fieldCondition, type TimeRange, timeConditions } from '../filters/filter-sql.ts';
import type { FieldFilter, OperandKind } from '../filters/operators.ts';
import {
  documentFilters,
  fieldFilters,
  textParameter,
  timestampParameter,
  uuidParameter,
} from '../filters/parameter-schemas.ts';
import type { Filterable } from '../filters/parameters.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import {
  isOwnerDocument,
  isOwnerTime,
  OWNER_DOCUMENTS,
  OWNER_KINDS,
  OWNER_TIME,
  OWNER_TIMES,
  type OwnerDocument,
  type OwnerSource,
  type OwnerTime,
  ownerOf,
  ownerPropertyCondition,
  ownerTimeCondition,
  type TimeCondition,
} from '../owners/owners.ts';
import { SEGMENT } from '../owners/segment.ts';
import { segmentCondition } from '../owners/segment-sql.ts';
import {
  DOCUMENT_FIELDS,
  type DocumentField,
  EVENT_COLUMNS,
  FILTER_FIELDS,
  type FilterField,
} from './event-columns.ts';

/** A field that events are selected by: their own, a time of their user or organization, or segments that one of these is in. */
export type SelectionField = FilterField | OwnerTime | 'segment';

/** What holds the properties that events are selected by: a field of theirs, or their user or organization. */
export type SelectionDocument = DocumentField | OwnerDocument;

export const SELECTION_DOCUMENTS: readonly SelectionDocument[] = [...DOCUMENT_FIELDS, ...OWNER_DOCUMENTS];

/** Which events a request is about. Times in milliseconds, inclusive. */
export interface EventSelection extends TimeRange {
  readonly fields: readonly FieldFilter<SelectionField>[];
  readonly properties: readonly PropertyFilter<SelectionDocument>[];
}

/** The parameters that select events, except those of properties and operators. */
export const selectionParameters = {
  ...byFilterField((field) => {
    const { type, filter } = EVENT_COLUMNS[field];
    return type === 'uuid' ? uuidParameter(filter.description) : textParameter(filter.description);
  }),
  segment: textParameter(
    'The name of a segment: events whose user or organization is in it. `segment[ne]`: is not, or is missing; `segment[in]`: is in one of some.',
  ),
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
export const eventFilterable: Filterable<SelectionField, SelectionDocument> = {
  fields: {
    ...byFilterField((field): OperandKind => {
      const { type, filter } = EVENT_COLUMNS[field];
      const item = type === 'uuid' ? uuidParameter(filter.description) : z.string();
      return { operators: filter.operators, item, typed: false };
    }),
    ...(Object.fromEntries(OWNER_TIMES.map((time) => [time, OWNER_TIME])) as Record<OwnerTime, OperandKind>),
    segment: SEGMENT,
  },
  documents: SELECTION_DOCUMENTS,
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
  owners: OwnerSource,
  prefix = '',
): readonly Sql[] {
  return [
    ...fields.map(({ field, condition }, index) => {
      if (field === 'segment') return segmentCondition(owners, { field, condition }, `${prefix}g${index}`);
      if (isOwnerTime(field))
        return ownerTimeCondition(owners, field, condition as TimeCondition, `${prefix}t${index}`);
      return fieldCondition({ field: `${prefix}${field}`, condition }, EVENT_COLUMNS[field]);
    }),
    ...properties.map((filter, index) => selectedPropertyCondition(filter, owners, `${prefix}p${index}`)),
  ];
}

/**
 * Returns the condition that an event, or its user or organization, matches a property filter.
 *
 * @param prefix begins the names of its parameters: it tells the filters of one query apart
 */
function selectedPropertyCondition(
  { document, ...filter }: PropertyFilter<SelectionDocument>,
  owners: OwnerSource,
  prefix: string,
): Sql {
  if (isOwnerDocument(document)) {
    return ownerPropertyCondition(owners, ownerOf(document), { document, ...filter }, prefix);
  }
  return eventPropertyCondition({ document, ...filter }, EVENT_COLUMNS[document].column, prefix);
}

/** Whether events are selected by what is known of their user or organization. */
export function isByOwners({ fields, properties }: Pick<EventSelection, 'fields' | 'properties'>): boolean {
  const isOfOwner = (field: SelectionField) => field === 'segment' || isOwnerTime(field);
  return fields.some(({ field }) => isOfOwner(field)) || properties.some(({ document }) => isOwnerDocument(document));
}

/** Returns what the owners of events are read from, in a query that leaves out hidden events, if there are any. */
export function ownersIn(tables: Tables, hidden: Sql | undefined): OwnerSource {
  return { tables, hidden };
}

/** Returns the conditions that the selected events meet, hidden ones among them. */
export function selectionConditions(selection: EventSelection, owners: OwnerSource): readonly Sql[] {
  return [...filterConditions(selection, owners), ...timeConditions(selection)];
}

/** Returns the WHERE of the selected events that are not hidden, and `more` conditions. */
export function whereSelected(
  tables: Tables,
  selection: EventSelection,
  hidden: Sql | undefined,
  more: readonly Sql[] = [],
): Sql {
  return where([...selectionConditions(selection, ownersIn(tables, hidden)), ...more, ...shownConditions(hidden)]);
}

/** Describes the filters on the properties of an event's JSON objects, its user and its organization. */
export function documentFiltersOfEvents() {
  const ofOwners = OWNER_KINDS.map((owner) => [
    `${owner}Properties`,
    documentFilters(
      `${owner}.properties`,
      `Properties that the event's ${owner} has now, also where the event is older. An event without ${owner} has none of them. `,
    ),
  ]);
  return Object.fromEntries([...DOCUMENT_FIELDS.map((document) => [document, documentFilters(document)]), ...ofOwners]);
}

/** Describes the filters of all reads of events, except the parameters with fixed names. */
export function filtersOfEvents() {
  return {
    ...documentFiltersOfEvents(),
    operators: fieldFilters(eventFilterable.fields, { 'userId[in]': 'jane,joe', 'event[prefix]': 'invoice_' }),
  };
}

import type { InputError } from '@sluice/shared/http/problem';
import { endOfDay } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { IDENTITIES, type Identity, type Sql, shownConditions, type Tables, where } from '../../store/store.ts';
import { eventPropertyCondition, fieldCondition, type TimeRange, timeConditions } from '../filters/filter-sql.ts';
import type { Condition, FieldFilter, OperandKind } from '../filters/operators.ts';
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
  ofPersons,
  ownerOf,
  ownerPropertyCondition,
  ownerTimeCondition,
  personPropertyCondition,
  type TimeCondition,
} from '../owners/owners.ts';
import { matchesNobody, namedPerson, namedUsers } from '../owners/persons.ts';
import { readSegments, SEGMENT } from '../owners/segment.ts';
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
  /** Default: what the workspace has set. */
  readonly identity?: Identity | undefined;
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
  identity: z.enum(IDENTITIES, `must be one of ${IDENTITIES.join(', ')}`).meta({
    description:
      'Whose the events of an anonymous visitor are. `linked`: of the user whom the visitor belongs to, as `GET /identities` says. `raw`: of no user. Default: what `GET /identities/settings` says.',
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
      if (isOwnerTime(field)) {
        const seen = (from: OwnerSource) =>
          ownerTimeCondition(from, field, condition as TimeCondition, `${prefix}t${index}`);
        return ownerOf(field) === 'user' ? ofPersons(owners, seen) : seen(owners);
      }
      const name = `${prefix}${field}`;
      if (field !== 'userId') return fieldCondition({ field: name, condition }, EVENT_COLUMNS[field]);
      const named = fieldCondition({ field: name, condition }, EVENT_COLUMNS[field], namedPerson(owners.tables));
      return personsNamed(owners, condition, name) ?? personFieldCondition(owners, condition, named);
    }),
    ...properties.map((filter, index) => selectedPropertyCondition(filter, owners, `${prefix}p${index}`)),
  ];
}

/** Returns the condition that the person of an event is one of those that a condition names, where it is known who became others. */
function personsNamed(owners: OwnerSource, condition: Condition, name: string): Sql | undefined {
  const { operator, value } = condition;
  if (operator !== 'eq' && operator !== 'ne' && operator !== 'in') return undefined;
  const named = operator === 'in' ? value : [value];
  const users = named.includes('') ? undefined : namedUsers(owners.tables, named);
  if (!users) return undefined;
  const parameter = `${name}_${operator}_users`;
  const sql = `user_id IN {${parameter}:Array(String)}`;
  const found = ofPersons(owners, () => ({
    ...{ sql, params: { [parameter]: users }, isOfIdentifier: true, hasMerged: true },
  }));
  return operator === 'ne' ? { ...found, sql: `NOT (${found.sql})` } : found;
}

/** Returns the condition that the person of an event meets a condition on `user_id`, which is there as SQL. */
function personFieldCondition(owners: OwnerSource, condition: Condition, { sql, params }: Sql): Sql {
  if (!matchesNobody(condition)) return ofPersons(owners, () => ({ sql, params, isOfIdentifier: true }));
  const opposite = ofPersons(owners, () => ({ sql: `NOT (${sql})`, params, isOfIdentifier: true }));
  return { ...opposite, sql: `NOT (${opposite.sql})` };
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
    const ofOwner = { document, ...filter };
    return ownerOf(document) === 'user'
      ? personPropertyCondition(owners, ofOwner, prefix)
      : ownerPropertyCondition(owners, 'organization', ofOwner, prefix);
  }
  return eventPropertyCondition({ document, ...filter }, EVENT_COLUMNS[document].column, prefix);
}

/** Whether events are selected by what is known of their user or organization. */
export function isByOwners({ fields, properties }: Pick<EventSelection, 'fields' | 'properties'>): boolean {
  const isOfOwner = (field: SelectionField) => field === 'segment' || isOwnerTime(field);
  return fields.some(({ field }) => isOfOwner(field)) || properties.some(({ document }) => isOwnerDocument(document));
}

type Filters = Pick<EventSelection, 'fields' | 'properties'>;

/** Returns the filters by the users of events, and all others. */
export function byUsers({ fields, properties }: Filters): { readonly ofUsers: Filters; readonly others: Filters } {
  const isField = ({ field, condition }: FieldFilter<SelectionField>) => {
    if (field === 'segment') return readSegments({ field, condition }).some((segment) => segment.of === 'user');
    return field === 'userId' || (isOwnerTime(field) && ownerOf(field) === 'user');
  };
  const isProperty = ({ document }: PropertyFilter<SelectionDocument>) => document === 'user.properties';
  return {
    ofUsers: { fields: fields.filter(isField), properties: properties.filter(isProperty) },
    others: {
      fields: fields.filter((filter) => !isField(filter)),
      properties: properties.filter((filter) => !isProperty(filter)),
    },
  };
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

// Events, users and organizations: the parameters that select them, the SQL of these, and the records in a response.

export { groupsOf } from './entities/candidates.ts';
export { registerDeleteUser } from './entities/delete-user.ts';
export { registerEntities } from './entities/entities.ts';
export { identifierParameter } from './entities/entities-parameters.ts';
export { readEntities, readEntityTimes } from './entities/entities-reader.ts';
export { ENTITY_KINDS, ENTITY_ROUTES, type EntityKind, noSuchEntity } from './entities/entity-kinds.ts';
export { type Entity, isoTime } from './entities/entity-record.ts';
export { readNames, SEARCHED_ENTITIES_MAX, searchNames } from './entities/names-reader.ts';
export { NAMING, NAMING_OF, type Naming, namingSchema } from './entities/naming.ts';
export {
  EVENT_COLUMNS,
  EVENT_EXAMPLE,
  EVENT_FIELDS,
  type EventColumnType,
  type EventField,
  type FieldsLike,
  GROUP_FIELDS,
  type GroupField,
} from './events/event-columns.ts';
export { afterSortKey, orderBy } from './events/event-order.ts';
export {
  asEventRow,
  EVENT_SELECT,
  type EventRow,
  eventRecord,
  receivedAtUs,
  selectOf,
  sortKeyOf,
  textOf,
} from './events/event-record.ts';
export {
  byUsers,
  documentFiltersOfEvents,
  type EventSelection,
  eventFilterable,
  filterConditions,
  filtersOfEvents,
  isByOwners,
  ownersIn,
  SELECTION_DOCUMENTS,
  type SelectionDocument,
  type SelectionField,
  START_AFTER_END,
  selectionConditions,
  selectionParameters,
  whereSelected,
} from './events/event-selection.ts';
export { registerEvents } from './events/events.ts';
export { PageReader } from './events/events-page.ts';
export { eventParameters, listKeyOf } from './events/events-parameters.ts';
export { mayBeFast, type ReadEvents, readEvents } from './events/fast-events.ts';
export { LINKED_USER, OwnersOfVisitors, onlyUser, readMerges, withIdentity } from './events/identity.ts';
export { PageDensities } from './events/page-windows.ts';
export { fieldCondition, type TimeRange, timeConditions } from './filters/filter-sql.ts';
export { type FieldFilter, listOf, notEmpty } from './filters/operators.ts';
export * from './filters/parameter-schemas.ts';
export {
  canonicalFilters,
  type Filterable,
  type ParsedParameters,
  parseParameters,
  refuseErrors,
  refuseParameters,
} from './filters/parameters.ts';
export { type PropertyFilter, propertyNameError } from './filters/property-filter.ts';
export { numberOfJson, textOfJson } from './filters/property-value.ts';
export {
  fittingIds,
  type ListedAt,
  type ListPage,
  PAGE_BYTES,
  pageMembers,
  parseWholeList,
  type SizedRow,
  wholeListParameters,
} from './filters/whole-lists.ts';
export { registerIdentities } from './identities/identities.ts';
export {
  isOwnerDocument,
  isOwnerTime,
  OWNER_DOCUMENTS,
  OWNER_KINDS,
  type Owner,
  type OwnerProperty,
  type OwnerSource,
  ownerOf,
  ownerValue,
  ownerValueColumn,
} from './owners/owners.ts';
export { becameSql, type PersonsRead } from './owners/persons.ts';
export {
  type KnownSegments,
  namesSegments,
  parseSegmentDefinition,
  readSegments,
  SEGMENT,
  SEGMENT_OPERATORS,
  SEGMENT_PARAMETER,
  type SegmentDefinition,
  type SegmentFilter,
  segmentOf,
  segmentSchema,
  withSegments,
} from './owners/segment.ts';
export { SEGMENT_SIZE_SETTINGS, segmentSizeQuery } from './owners/segment-sql.ts';

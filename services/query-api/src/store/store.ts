// Everything between a route and ClickHouse: the route's frame, slots, budgets, the statement and its rows, which server is read,
// and what of it is hidden.

export {
  type ClickHouseReader,
  HttpClickHouseReader,
  type ReadRequest,
  type Row,
  type RowBatches,
} from './clickhouse-reader.ts';
export { readDeletedWithUsers } from './deletions/deleted-with-users.ts';
export { hiddenDeadLetters, shownConditions } from './deletions/hidden-events.ts';
export {
  DELETIONS_FRESH_MS,
  deletedUsers,
  type LastDeletions,
  lastDeletion,
  lastDeletionOf,
  withDeletions,
} from './deletions/last-deletions.ts';
export {
  returnedUsersQuery,
  returnedUsersRowsQuery,
  sightings,
  timesSinceDeletionQuery,
  timesTogetherSinceDeletionQuery,
} from './deletions/returned-users.ts';
export { FAST_SETS_MAX } from './fast/known-fast-properties.ts';
export { IDENTITIES, IDENTITY_DEFAULT, type Identity } from './links/default-identities.ts';
export {
  asUnavailable,
  changeStored,
  insertInPlaceOf,
  Purge,
  type Replaced,
  SerialQueue,
  Setting,
  type SettingTable,
  unavailable,
  versionAfter,
} from './own-rows.ts';
export type { ExportQuery, HidingStatement, Query, QueryContext, QueryOptions, Statement } from './query.ts';
export { isOutOfSpace, isOutOfTime, outcomeOf, queryProblem, tooLong } from './query-error.ts';
export { measured, QueryRunner, untilStoreAnswers } from './query-runner.ts';
export {
  budgetSettings,
  COUNT_SETTINGS,
  LARGE_ROWS_BLOCK,
  LARGE_ROWS_SETTINGS,
  POOL_SETTINGS,
  type QuerySettings,
  querySettings,
  timeLimit,
} from './query-settings.ts';
export { isLateForSlot } from './query-slots.ts';
export { AHEAD_BYTES_MAX } from './read-ahead.ts';
export { ClickHouseException, ConnectionFailure, DeletionsUnknown, QueryTooLong } from './read-failures.ts';
export {
  contextOf,
  type QueryRead,
  type ReadDependencies,
  type ReadRoute,
  type RequestContext,
  registerQueryRead,
  registerRead,
  respondToRead,
  whileConnected,
} from './read-route.ts';
export { RequestQueries } from './request-queries.ts';
export { type Admission, REQUEST_CONNECTIONS, RequestSlots } from './request-slots.ts';
export { createReadiness, SchemaComponent } from './schema.ts';
export { CLOCKS_MS, serverNames } from './servers/chosen-store.ts';
export { openStores, type Source } from './servers/open-stores.ts';
export { BoundParameters, type Sql, type SqlValue, where } from './sql.ts';
export { queryStringOf, refuseTooLong, VALUE_CHARACTERS_MAX } from './statement-request.ts';
export type { StatementWatch } from './statement-slot.ts';
export {
  type Identities,
  NO_IDENTITIES,
  RequestStore,
  type Store,
  type Stores,
  type StreamStores,
  type Visibility,
} from './stores.ts';
export {
  areAnyMerged,
  type Deletion,
  type FastSet,
  type FastSets,
  type KnownMerges,
  keptSince,
  LOCAL_TABLES,
  newestDeletions,
  type Tables,
  type Visitors,
} from './tables.ts';
export { TimeBudget } from './time-budget.ts';

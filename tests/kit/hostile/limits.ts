import { maxHeaderSize } from 'node:http';
import { configSchema as ingestSchema, rowBytesMax } from '@sluice/ingest-api/config';
import { BODY_BYTES_PER_SECOND_MIN, BODY_GRACE_MS } from '@sluice/ingest-api/http/body-reader';
import { IGNORED_BODY_BYTES_MAX } from '@sluice/ingest-api/routes/ignored-requests';
import {
  BATCH_BODY_BYTES_MAX,
  EVENT_BODY_BYTES_MAX,
  HOLD_FOR_RATE_MS_MAX,
} from '@sluice/ingest-api/routes/posthog/post-events';
import { ALERTS_MAX, FOR_MAX } from '@sluice/query-api/alerts/alert';
import { DIGESTS_MAX } from '@sluice/query-api/alerts/digest';
import { MESSAGE_BODY_BYTES_MAX } from '@sluice/query-api/alerts/message-routes';
import { configSchema as querySchema } from '@sluice/query-api/config';
import {
  BUCKETS_MAX,
  COMPARED_CHARACTERS_MAX,
  CUBE_KEYS_MAX,
  GROUP_KEYS_MAX,
  GROUP_PARAMETER_MAX,
  GROUPS_MAX,
  ITEMS_MAX,
  JOINS_MAX,
  KEYS_PER_WORKSPACE_MAX,
  LIMIT_MAX,
  NAME_ALTERNATIVES_MAX,
  NAME_DOTS_MAX,
  NAME_PROPERTIES_MAX,
  PARAM_CHARACTERS_MAX,
  PERIODS_MAX,
  PLANNED_NODES_MAX,
  PROPERTY_FILTERS_MAX,
  PROPERTY_NAME_CHARACTERS_MAX,
  RESUMABLE_DAYS,
  SEARCH_CHARACTERS_MAX,
  SEARCH_RESULTS_MAX,
  SEGMENT_CONDITIONS_MAX,
  SEGMENT_NAME_CHARACTERS_MAX,
  SEGMENTS_MAX,
  SEGMENTS_OF_REQUEST_MAX,
  SELECTS_MAX,
  STATEMENT_BYTES_MAX,
  STATEMENT_PARAMS_MAX,
  STEPS_MAX,
  TOTAL_CAP,
  WINDOWS_MAX,
  WITHIN_DAYS_MAX,
} from '@sluice/query-api/http/limits';
import { REPLAY_BODY_BYTES_MAX } from '@sluice/query-api/manage/dead-letters/dead-letters-route';
import { FAST_BODY_BYTES_MAX } from '@sluice/query-api/manage/fast/fast-properties-route';
import { IDENTITY_SETTINGS_BODY_BYTES_MAX } from '@sluice/query-api/manage/identities/identity-settings-route';
import { KEY_BODY_BYTES_MAX } from '@sluice/query-api/manage/keys/keys-route';
import { NAMING_BODY_BYTES_MAX } from '@sluice/query-api/manage/names/names-route';
import { SEGMENT_BODY_BYTES_MAX } from '@sluice/query-api/manage/segments/segments-route';
import { TILE_SQL_BYTES_MAX } from '@sluice/query-api/manage/views/stored-reports';
import {
  DASHBOARDS_MAX,
  LINKS_MAX,
  NOTE_CHARACTERS_MAX,
  PARAMETER_CHARACTERS_MAX,
  PARAMETERS_MAX,
  TILES_MAX,
  VIEW_BODY_BYTES_MAX,
  NAME_CHARACTERS_MAX as VIEW_NAME_CHARACTERS_MAX,
  VIEW_SQL_CHARACTERS_MAX,
  VIEWS_MAX,
} from '@sluice/query-api/manage/views/view';
import { IDENTITY_BODY_BYTES_MAX } from '@sluice/query-api/records/identities/identity-page';
import {
  SAMPLE_CHARACTERS_MAX,
  SAMPLE_EVENTS_MAX,
  SAMPLE_OWNERS_MAX,
} from '@sluice/query-api/reports/menus/event-sample';
import {
  MENU_ENTRIES_MAX,
  NAME_CHARACTERS_MAX,
  NAMES_CHARACTERS_MAX,
} from '@sluice/query-api/reports/menus/menu-entries';
import { SQL_BODY_BYTES_MAX } from '@sluice/query-api/sql/sql-route';
import { SQL_BYTES_MAX, VALUE_CHARACTERS_MAX } from '@sluice/query-api/store/statement-request';
import { BATCH_BYTES_MAX, BATCH_EVENTS_MAX } from '@sluice/query-api/webhooks/delivery';
import { LOG_LINES_MAX } from '@sluice/query-api/webhooks/delivery-log';
import { RESPONSE_BYTES_MAX } from '@sluice/query-api/webhooks/http-sender';
import { FILTER_CHARACTERS_MAX, FILTERS_MAX, URL_CHARACTERS_MAX } from '@sluice/query-api/webhooks/webhook-request';
import { WEBHOOK_BODY_BYTES_MAX } from '@sluice/query-api/webhooks/webhooks-route';
import { FAST_PROPERTIES_MAX } from '@sluice/shared/clickhouse/fast-properties';
import { ERRORS_MAX, type ProblemCode } from '@sluice/shared/http/problem';
import { REQUEST_TIMEOUT_MS } from '@sluice/shared/http/server';
import { MESSAGE_ID_LENGTH_MAX } from '@sluice/submissions/calls/call';
import { WRITE_KEY_BYTES_MAX } from '@sluice/submissions/calls/call-outline';
import { JSON_DEPTH_MAX } from '@sluice/submissions/reading/json-object';
import {
  EVENT_NAME_LENGTH_MAX,
  IDEMPOTENCY_KEY_LENGTH_MAX,
  IDENTIFIER_LENGTH_MAX,
  JSON_VALUES_MAX,
  TIMESTAMP_AHEAD_MS_MAX,
} from '@sluice/submissions/reading/submission-limits';

/*
 * Every limit of the API. docs/guide/api.md shows this table (limits-document.ts), and npm run hostile takes each limit at its
 * limit, one under and one over. The numbers are those that the services themselves compare with.
 */

/** One limit. */
export interface Limit {
  readonly title: string;
  /** The most that is accepted; of a speed, the least. */
  readonly max: number;
  readonly unit: 'bytes' | 'bytes a second' | 'characters' | 'days' | 'hours' | 'levels' | 'seconds' | '';
  /** The variable that sets it. */
  readonly variable?: string;
  /** What a request beyond it gets: a problem, or another consequence in words. */
  readonly beyond: ProblemCode | `${string} ${string}`;
}

const ingest = ingestSchema.parse({ KAFKA_BROKERS: 'kafka:9092', API_KEYS_FILE: 'keys.json' });
const query = querySchema.parse({ CLICKHOUSE_URL: 'http://clickhouse:8123', API_KEYS_FILE: 'keys.json' });

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

const IN_ITS_EVENT = 'a call is rejected';

const REQUEST_LIMITS = {
  head: { title: 'address and headers of a request', max: maxHeaderSize, unit: 'bytes', beyond: 'invalid_request' },
  arrival: {
    title: 'time for a whole request to arrive',
    max: REQUEST_TIMEOUT_MS / SECOND_MS,
    unit: 'seconds',
    beyond: 'the connection is closed',
  },
  faults: { title: 'errors that a response lists', max: ERRORS_MAX, unit: '', beyond: 'further ones are counted' },
} as const satisfies Record<string, Limit>;

const SUBMISSION_LIMITS = {
  bodyBytes: {
    title: 'body, after decompression',
    max: ingest.BODY_BYTES_MAX,
    unit: 'bytes',
    variable: 'BODY_BYTES_MAX',
    beyond: 'body_too_large',
  },
  bodySpeed: {
    title: `speed of a body after its first ${BODY_GRACE_MS / SECOND_MS} seconds, at least`,
    max: BODY_BYTES_PER_SECOND_MIN,
    unit: 'bytes a second',
    beyond: 'body_too_slow',
  },
  events: {
    title: 'events of a submission',
    max: ingest.EVENTS_PER_SUBMISSION_MAX,
    unit: '',
    variable: 'EVENTS_PER_SUBMISSION_MAX',
    beyond: 'invalid_request',
  },
  properties: {
    title: 'properties of a submission, and traits of a call',
    max: ingest.PROPERTIES_PER_SUBMISSION_MAX,
    unit: '',
    variable: 'PROPERTIES_PER_SUBMISSION_MAX',
    beyond: IN_ITS_EVENT,
  },
  eventBytes: {
    title: 'event, without white space between tokens',
    max: ingest.EVENT_BYTES_MAX,
    unit: 'bytes',
    variable: 'EVENT_BYTES_MAX',
    beyond: 'body_too_large',
  },
  propertyBytes: {
    title: 'property with its name, likewise',
    max: ingest.EVENT_BYTES_MAX,
    unit: 'bytes',
    variable: 'EVENT_BYTES_MAX',
    beyond: 'body_too_large',
  },
  eventValues: {
    title: 'values in an event, where an empty object or array counts as two',
    max: JSON_VALUES_MAX,
    unit: '',
    beyond: IN_ITS_EVENT,
  },
  propertyValues: { title: 'values in a property', max: JSON_VALUES_MAX, unit: '', beyond: 'invalid_request' },
  depth: {
    title: 'depth of `properties`, `context` and `traits`',
    max: JSON_DEPTH_MAX,
    unit: 'levels',
    beyond: IN_ITS_EVENT,
  },
  identifier: { title: 'identifier', max: IDENTIFIER_LENGTH_MAX, unit: 'characters', beyond: IN_ITS_EVENT },
  eventName: { title: 'name of an event', max: EVENT_NAME_LENGTH_MAX, unit: 'characters', beyond: IN_ITS_EVENT },
  ahead: {
    title: "how far a timestamp may be ahead of the server's clock",
    max: TIMESTAMP_AHEAD_MS_MAX / HOUR_MS,
    unit: 'hours',
    beyond: IN_ITS_EVENT,
  },
  rowBytes: {
    title: 'rows of a submission, each with the identifiers, and numbers written out',
    max: rowBytesMax(ingest),
    unit: 'bytes',
    variable: 'BODY_BYTES_MAX',
    beyond: 'body_too_large',
  },
  idempotencyKey: {
    title: '`Idempotency-Key`',
    max: IDEMPOTENCY_KEY_LENGTH_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
} as const satisfies Record<string, Limit>;

const CALL_LIMITS = {
  calls: {
    title: 'calls of a batch',
    max: ingest.EVENTS_PER_SUBMISSION_MAX,
    unit: '',
    variable: 'EVENTS_PER_SUBMISSION_MAX',
    beyond: 'body_too_large',
  },
  callBytes: {
    title: 'call, without white space between tokens',
    max: ingest.EVENT_BYTES_MAX,
    unit: 'bytes',
    variable: 'EVENT_BYTES_MAX',
    beyond: 'the call is rejected',
  },
  messageId: {
    title: '`messageId` of a call',
    max: MESSAGE_ID_LENGTH_MAX,
    unit: 'characters',
    beyond: 'the call is rejected',
  },
  posthogEventBody: {
    title: 'body on `/e/`, `/i/v0/e/` and `/capture/`, after decompression',
    max: EVENT_BODY_BYTES_MAX,
    unit: 'bytes',
    beyond: 'body_too_large',
  },
  posthogBatchBody: {
    title: 'body on `/batch/`, after decompression; if `BODY_BYTES_MAX` is less, that holds',
    max: BATCH_BODY_BYTES_MAX,
    unit: 'bytes',
    beyond: 'body_too_large',
  },
  posthogRate: {
    title: 'wait of a request of a PostHog client for the rate of its key',
    max: HOLD_FOR_RATE_MS_MAX / SECOND_MS,
    unit: 'seconds',
    beyond: 'rate_limited',
  },
  ignoredBody: {
    title: 'body of a request that is ignored, such as a recording on `/s/`',
    max: IGNORED_BODY_BYTES_MAX,
    unit: 'bytes',
    beyond: 'body_too_large',
  },
  writeKey: { title: '`writeKey` in a body', max: WRITE_KEY_BYTES_MAX, unit: 'bytes', beyond: 'unauthorized' },
} as const satisfies Record<string, Limit>;

const QUERY_LIMITS = {
  propertyFilters: {
    title: 'filters on properties, of all steps of a funnel together',
    max: PROPERTY_FILTERS_MAX,
    unit: '',
    beyond: 'invalid_request',
  },
  segmentsOfRequest: {
    title: 'segments that a request names',
    max: SEGMENTS_OF_REQUEST_MAX,
    unit: '',
    beyond: 'invalid_request',
  },
  dots: { title: 'dots in the name of a property', max: NAME_DOTS_MAX, unit: '', beyond: 'invalid_request' },
  items: { title: 'items of a list', max: ITEMS_MAX, unit: '', beyond: 'invalid_request' },
  sqlBytes: {
    title: 'length of a query in SQL, which names each place that a name with dots can mean',
    max: SQL_BYTES_MAX,
    unit: 'bytes',
    beyond: 'invalid_request',
  },
  valueCharacters: {
    title: 'value of a filter as ClickHouse gets it, percent-encoded',
    max: VALUE_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
  page: { title: '`limit` of a list', max: LIMIT_MAX, unit: '', beyond: 'it counts as the limit' },
  offset: { title: '`offset`', max: Number.MAX_SAFE_INTEGER, unit: '', beyond: 'invalid_request' },
  total: {
    title: 'count of `total=capped`',
    max: TOTAL_CAP,
    unit: '',
    beyond: '`totalIsLowerBound` is `true`',
  },
  menu: { title: '`limit` of a menu', max: LIMIT_MAX, unit: '', beyond: 'invalid_request' },
  buckets: {
    title: 'buckets of a series, cohorts of retention, and intervals of books',
    max: BUCKETS_MAX,
    unit: '',
    beyond: 'invalid_request',
  },
  groupKeys: { title: 'names in `groupBy` of a series', max: GROUP_KEYS_MAX, unit: '', beyond: 'invalid_request' },
  groups: { title: '`groups` of a series', max: GROUPS_MAX, unit: '', beyond: 'invalid_request' },
  steps: { title: 'steps of a funnel', max: STEPS_MAX, unit: '', beyond: 'invalid_request' },
  within: { title: '`within` of a funnel', max: WITHIN_DAYS_MAX, unit: 'days', beyond: 'invalid_request' },
  periods: { title: '`periods` of retention', max: PERIODS_MAX, unit: '', beyond: 'invalid_request' },
  sampleEvents: { title: 'events of a sample', max: SAMPLE_EVENTS_MAX, unit: '', beyond: 'the sample ends' },
  sampleOwners: {
    title: 'users or organizations of a sample of their properties',
    max: SAMPLE_OWNERS_MAX,
    unit: '',
    beyond: 'the sample ends',
  },
  sampleCharacters: {
    title: 'text of a sample',
    max: SAMPLE_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'the sample ends',
  },
  sampleEntries: { title: 'different results in a sample', max: MENU_ENTRIES_MAX, unit: '', beyond: 'the sample ends' },
  sampleNames: {
    title: 'names of properties in a sample, each with those of the objects around it',
    max: NAMES_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'the sample ends',
  },
  listedName: {
    title: 'name in a menu of properties',
    max: NAME_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'it is left out',
  },
  listeners: {
    title: 'stream clients of a workspace',
    max: query.STREAM_LISTENERS_PER_WORKSPACE,
    unit: '',
    variable: 'STREAM_LISTENERS_PER_WORKSPACE',
    beyond: 'too_many_listeners',
  },
  position: {
    title: 'age of a stream position',
    max: RESUMABLE_DAYS,
    unit: 'days',
    beyond: 'position_lost',
  },
  queries: {
    title: 'queries of a workspace at once',
    max: query.QUERY_CONCURRENCY_PER_WORKSPACE,
    unit: '',
    variable: 'QUERY_CONCURRENCY_PER_WORKSPACE',
    beyond: 'further ones wait, up to a quarter of `QUERY_PENDING_MAX`; then `overloaded`',
  },
  reports: {
    title: 'reports of a workspace at once',
    max: query.REPORT_CONCURRENCY_PER_WORKSPACE,
    unit: '',
    variable: 'REPORT_CONCURRENCY_PER_WORKSPACE',
    beyond: 'further ones wait',
  },
  queryTime: {
    title: 'time of a query',
    max: query.QUERY_TIMEOUT_MS / SECOND_MS,
    unit: 'seconds',
    variable: 'QUERY_TIMEOUT_MS',
    beyond: 'query_too_expensive',
  },
  queryMemory: {
    title: 'memory of a query in ClickHouse',
    max: query.QUERY_MEMORY_BYTES_MAX,
    unit: 'bytes',
    variable: 'QUERY_MEMORY_BYTES_MAX',
    beyond: 'query_too_expensive',
  },
} as const satisfies Record<string, Limit>;

const STATEMENT_LIMITS = {
  statementBody: { title: 'body', max: SQL_BODY_BYTES_MAX, unit: 'bytes', beyond: 'body_too_large' },
  statement: { title: 'statement', max: STATEMENT_BYTES_MAX, unit: 'bytes', beyond: 'invalid_request' },
  statementParams: { title: 'parameters', max: STATEMENT_PARAMS_MAX, unit: '', beyond: 'invalid_request' },
  statementParam: {
    title: 'text in a parameter',
    max: PARAM_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
  statementSelects: { title: '`SELECT`s in a statement', max: SELECTS_MAX, unit: '', beyond: 'invalid_sql' },
  statementJoins: { title: 'joins in a statement', max: JOINS_MAX, unit: '', beyond: 'invalid_sql' },
  statementWindows: { title: 'windows in a statement', max: WINDOWS_MAX, unit: '', beyond: 'invalid_sql' },
  statementCube: {
    title: 'expressions in each list of a statement with `CUBE`',
    max: CUBE_KEYS_MAX,
    unit: '',
    beyond: 'invalid_sql',
  },
  statementParts: {
    title: 'parts of a statement, each name written out as what it stands for',
    max: PLANNED_NODES_MAX,
    unit: '',
    beyond: 'invalid_sql',
  },
  statementList: {
    title: 'constant list of `hasAll` and `multiSearch…`',
    max: COMPARED_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_sql',
  },
  statementParameter: {
    title: 'parameter of `topK`, `histogram` and the like',
    max: GROUP_PARAMETER_MAX,
    unit: '',
    beyond: 'invalid_sql',
  },
  statementRows: {
    title: 'rows of a result',
    max: query.SQL_RESULT_ROWS_MAX,
    unit: '',
    variable: 'SQL_RESULT_ROWS_MAX',
    beyond: 'query_too_expensive',
  },
} as const satisfies Record<string, Limit>;

const KEY_LIMITS = {
  keys: {
    title: 'keys of a workspace',
    max: KEYS_PER_WORKSPACE_MAX,
    unit: '',
    beyond: 'invalid_request',
  },
  replayBody: {
    title: 'body of `POST /dead-letters/ID/replay`',
    max: REPLAY_BODY_BYTES_MAX,
    unit: 'bytes',
    beyond: 'body_too_large',
  },
  keyBody: { title: 'body of `POST /keys`', max: KEY_BODY_BYTES_MAX, unit: 'bytes', beyond: 'body_too_large' },
} as const satisfies Record<string, Limit>;

const WEBHOOK_LIMITS = {
  webhooks: {
    title: 'webhooks of a workspace',
    max: query.WEBHOOKS_PER_WORKSPACE,
    unit: '',
    variable: 'WEBHOOKS_PER_WORKSPACE',
    beyond: 'invalid_request',
  },
  webhookBody: { title: 'body', max: WEBHOOK_BODY_BYTES_MAX, unit: 'bytes', beyond: 'body_too_large' },
  webhookUrl: { title: '`url`', max: URL_CHARACTERS_MAX, unit: 'characters', beyond: 'invalid_request' },
  webhookFilters: { title: 'members of `filter`', max: FILTERS_MAX, unit: '', beyond: 'invalid_request' },
  webhookFilter: {
    title: 'text of a member of `filter`',
    max: FILTER_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
  webhookEvents: {
    title: 'events of a delivery with `batched`',
    max: BATCH_EVENTS_MAX,
    unit: '',
    beyond: 'the next delivery has the others',
  },
  webhookBytes: {
    title: 'body of such a delivery with more than one event',
    max: BATCH_BYTES_MAX,
    unit: 'bytes',
    beyond: 'the next delivery has the others',
  },
  webhookTime: {
    title: 'time of a receiver for a response',
    max: query.WEBHOOK_TIMEOUT_MS / SECOND_MS,
    unit: 'seconds',
    variable: 'WEBHOOK_TIMEOUT_MS',
    beyond: 'the attempt has failed',
  },
  webhookResponse: {
    title: 'response of a receiver',
    max: RESPONSE_BYTES_MAX,
    unit: 'bytes',
    beyond: 'the rest is not read',
  },
  webhookFailing: {
    title: 'failures of a receiver',
    max: query.WEBHOOK_GIVE_UP_MS / HOUR_MS,
    unit: 'hours',
    variable: 'WEBHOOK_GIVE_UP_MS',
    beyond: 'the webhook is paused',
  },
  webhookLog: {
    title: 'attempts in the log of a webhook',
    max: LOG_LINES_MAX,
    unit: '',
    beyond: 'the oldest are gone',
  },
} as const satisfies Record<string, Limit>;

const VIEW_LIMITS = {
  views: { title: 'views of a workspace', max: VIEWS_MAX, unit: '', beyond: 'invalid_request' },
  dashboards: { title: 'dashboards of a workspace', max: DASHBOARDS_MAX, unit: '', beyond: 'invalid_request' },
  dashboardTiles: { title: 'tiles of a dashboard', max: TILES_MAX, unit: '', beyond: 'invalid_request' },
  dashboardLinks: { title: 'links of a dashboard', max: LINKS_MAX, unit: '', beyond: 'invalid_request' },
  viewBody: { title: 'body', max: VIEW_BODY_BYTES_MAX, unit: 'bytes', beyond: 'body_too_large' },
  dashboardNote: { title: '`note` of a tile', max: NOTE_CHARACTERS_MAX, unit: 'characters', beyond: 'invalid_request' },
  viewName: { title: '`name`', max: VIEW_NAME_CHARACTERS_MAX, unit: 'characters', beyond: 'invalid_request' },
  viewParameters: { title: 'members of `parameters`', max: PARAMETERS_MAX, unit: '', beyond: 'invalid_request' },
  viewParameter: {
    title: 'text of a member of `parameters`',
    max: PARAMETER_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
  viewRows: {
    title: 'rows of a tile of SQL',
    max: TILE_SQL_BYTES_MAX,
    unit: 'bytes',
    beyond: 'query_too_expensive',
  },
  viewSql: {
    title: 'text of `sql` in `parameters`',
    max: VIEW_SQL_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
} as const satisfies Record<string, Limit>;

const SEGMENT_LIMITS = {
  segments: { title: 'segments of a workspace', max: SEGMENTS_MAX, unit: '', beyond: 'invalid_request' },
  segmentName: {
    title: 'name, of letters of ASCII, digits, `-` and `_`',
    max: SEGMENT_NAME_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
  segmentConditions: { title: 'conditions', max: SEGMENT_CONDITIONS_MAX, unit: '', beyond: 'invalid_request' },
  segmentBody: { title: 'body', max: SEGMENT_BODY_BYTES_MAX, unit: 'bytes', beyond: 'body_too_large' },
} as const satisfies Record<string, Limit>;

const IDENTITY_LIMITS = {
  identityBody: {
    title: 'body of `POST /identities` and of `POST /identities/merge`',
    max: IDENTITY_BODY_BYTES_MAX,
    unit: 'bytes',
    beyond: 'body_too_large',
  },
  identitySettingsBody: {
    title: 'body of `PUT /identities/settings`',
    max: IDENTITY_SETTINGS_BODY_BYTES_MAX,
    unit: 'bytes',
    beyond: 'body_too_large',
  },
} as const satisfies Record<string, Limit>;

const FAST_LIMITS = {
  fastProperties: { title: 'fast properties', max: FAST_PROPERTIES_MAX, unit: '', beyond: 'invalid_request' },
  fastProperty: {
    title: 'name of a fast property',
    max: PROPERTY_NAME_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
  fastBody: {
    title: 'body of `PUT /properties/fast`',
    max: FAST_BODY_BYTES_MAX,
    unit: 'bytes',
    beyond: 'body_too_large',
  },
} as const satisfies Record<string, Limit>;

const NAMING_LIMITS = {
  namingAlternatives: {
    title: 'lists of properties that a name can be of, and properties that an e-mail address can be',
    max: NAME_ALTERNATIVES_MAX,
    unit: '',
    beyond: 'invalid_request',
  },
  namingProperties: { title: 'properties of one list', max: NAME_PROPERTIES_MAX, unit: '', beyond: 'invalid_request' },
  namingProperty: {
    title: 'name of a property',
    max: PROPERTY_NAME_CHARACTERS_MAX,
    unit: 'characters',
    beyond: 'invalid_request',
  },
  namingBody: { title: 'body', max: NAMING_BODY_BYTES_MAX, unit: 'bytes', beyond: 'body_too_large' },
  searchText: { title: 'text of a search', max: SEARCH_CHARACTERS_MAX, unit: 'characters', beyond: 'invalid_request' },
  searchResults: {
    title: 'users, and organizations, that a search returns',
    max: SEARCH_RESULTS_MAX,
    unit: '',
    beyond: 'invalid_request',
  },
} as const satisfies Record<string, Limit>;

const ALERT_LIMITS = {
  alerts: { title: 'alerts of a workspace', max: ALERTS_MAX, unit: '', beyond: 'invalid_request' },
  digests: { title: 'digests of a workspace', max: DIGESTS_MAX, unit: '', beyond: 'invalid_request' },
  alertBody: { title: 'body', max: MESSAGE_BODY_BYTES_MAX, unit: 'bytes', beyond: 'body_too_large' },
  alertName: { title: '`name`', max: VIEW_NAME_CHARACTERS_MAX, unit: 'characters', beyond: 'invalid_request' },
  alertUrl: { title: '`url`', max: URL_CHARACTERS_MAX, unit: 'characters', beyond: 'invalid_request' },
  alertFor: { title: '`for`', max: FOR_MAX, unit: '', beyond: 'invalid_request' },
} as const satisfies Record<string, Limit>;

/** The limits by what they limit. */
export const LIMIT_GROUPS = {
  'All requests': REQUEST_LIMITS,
  'Submissions and calls': SUBMISSION_LIMITS,
  Calls: CALL_LIMITS,
  Queries: QUERY_LIMITS,
  SQL: STATEMENT_LIMITS,
  'Saved views': VIEW_LIMITS,
  Segments: SEGMENT_LIMITS,
  Names: NAMING_LIMITS,
  'Fast properties': FAST_LIMITS,
  Identities: IDENTITY_LIMITS,
  Webhooks: WEBHOOK_LIMITS,
  'Alerts and digests': ALERT_LIMITS,
  Keys: KEY_LIMITS,
} as const;

export const LIMITS = {
  ...REQUEST_LIMITS,
  ...SUBMISSION_LIMITS,
  ...CALL_LIMITS,
  ...QUERY_LIMITS,
  ...STATEMENT_LIMITS,
  ...VIEW_LIMITS,
  ...SEGMENT_LIMITS,
  ...NAMING_LIMITS,
  ...FAST_LIMITS,
  ...IDENTITY_LIMITS,
  ...WEBHOOK_LIMITS,
  ...ALERT_LIMITS,
  ...KEY_LIMITS,
} as const;

export type LimitId = keyof typeof LIMITS;

import { Problem } from '@sluice/shared/http/problem';
import {
  afterSortKey,
  becameSql,
  EVENT_FIELDS,
  type EventColumnType,
  isOwnerTime,
  LINKED_USER,
  onlyUser,
  orderBy,
  timeConditions,
  whereSelected,
} from '../../records/records.ts';
import {
  type HidingStatement,
  LARGE_ROWS_BLOCK,
  LARGE_ROWS_SETTINGS,
  POOL_SETTINGS,
  type QueryContext,
  type QueryRunner,
  type QuerySettings,
  type Sql,
  type Tables,
  where,
} from '../../store/store.ts';
import { REPORT } from '../report-runner.ts';
import { type ExportFormat, type ExportRequest, formatOf } from './export-parameters.ts';

/** Expressions of a field's JSON. It equals, as JSON, what a record of `GET /events` has. */
const JSON_SQL: Readonly<Record<EventColumnType, (column: string) => string>> = {
  uuid: (column) => `'"', toString(${column}), '"'`,
  text: (column) => `toJSONString(${column})`,
  identifier: (column) => `if(empty(${column}), 'null', toJSONString(${column}))`,
  json: (column) => column,
  milliseconds: (column) => `'"', ${isoTime(column)}, '"'`,
  microseconds: (column) => `'"', ${isoTime(column)}, '"'`,
};

/** Columns of a table. A missing identifier is NULL. */
const COLUMN_SQL: Readonly<Record<EventColumnType, (column: string, format: ExportFormat) => string>> = {
  uuid: (column) => `toString(${column})`,
  text: (column) => `toString(${column})`,
  identifier: (column) => `nullIf(${column}, '')`,
  json: (column) => column,
  milliseconds: (column, format) => (format === 'parquet' ? column : isoTime(column)),
  microseconds: (column, format) => (format === 'parquet' ? `toDateTime64(${column}, 3, 'UTC')` : isoTime(column)),
};

function isoTime(column: string): string {
  return `concat(replaceOne(substring(toString(${column}), 1, 23), ' ', 'T'), 'Z')`;
}

/** What a record ends with: what goes on after it finds the times there. */
const TIMES: readonly string[] = ['timestamp', 'receivedAt'];

/**
 * Returns the expression of a record.
 *
 * @param person SQL of the user of the person; undefined: records do not name it
 */
function recordSql(person: string | undefined): string {
  const members = EVENT_FIELDS.map(([field, { column, type }]) => [field, JSON_SQL[type](column)] as const);
  const all = [
    ...members.filter(([field]) => !TIMES.includes(field)),
    ...(person === undefined ? [] : [[LINKED_USER, JSON_SQL.identifier(person)] as const]),
    ...members.filter(([field]) => TIMES.includes(field)),
  ];
  return `concat('{', ${all.map(([name, sql], index) => `'${index === 0 ? '' : ','}"${name}":', ${sql}`).join(', ')}, '}')`;
}

/** Returns the columns of a table, of which the person comes last. */
function tableSql(format: ExportFormat, person: string | undefined): string {
  const columns = EVENT_FIELDS.map(([field, { column, type }]) => [field, COLUMN_SQL[type](column, format)] as const);
  const all = [
    ...columns,
    ...(person === undefined ? [] : [[LINKED_USER, COLUMN_SQL.identifier(person, format)] as const]),
  ];
  return all.map(([name, sql]) => `${sql} AS \`${name}\``).join(', ');
}

type Place = NonNullable<ExportRequest['after']>;

/** A part of an export: the events after one of them, up to and with another one. Default: from the first, and to the last. */
export interface ExportPart {
  readonly after?: Place | undefined;
  readonly upTo?: Place | undefined;
  /** Whether nothing comes before it in the response. */
  readonly isFirst: boolean;
}

/** Returns the conditions of a part. */
function partConditions(
  direction: ExportRequest['direction'],
  { after, upTo }: Omit<ExportPart, 'isFirst'>,
): readonly Sql[] {
  const order = { field: 'timestamp', direction } as const;
  const keyOf = (place: Place) => ({ ...place, value: place.timestampMs });
  const notAfter = upTo && afterSortKey(order, keyOf(upTo), 'up_to');
  const compare = direction === 'ASC' ? '<=' : '>=';
  return [
    ...(after ? [afterSortKey(order, keyOf(after))] : []),
    // The first comparison is for the primary key.
    ...(notAfter
      ? [
          {
            sql: `timestamp ${compare} fromUnixTimestamp64Milli({up_to_timestamp:Int64}) AND NOT (${notAfter.sql})`,
            params: notAfter.params,
          },
        ]
      : []),
  ];
}

/**
 * Returns the query for a part of an export, with its FORMAT. ClickHouse writes the records: what query-api need not parse, it
 * forwards several times faster.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function exportQuery(
  tables: Tables,
  { selection, format, direction }: ExportRequest,
  hidden: Sql | undefined,
  part: ExportPart,
): Sql {
  const conditions = partConditions(direction, part);
  const { sql, params } = whereSelected(tables, selection, hidden, conditions);
  const person = tables.arePersons ? personSql(tables, selection, conditions) : undefined;
  const columns = format === 'ndjson' ? recordSql(person?.sql) : tableSql(format, person?.sql);
  const { clickHouse, continued = clickHouse } = formatOf(format);
  return {
    sql: `SELECT ${columns}
FROM ${tables.eventsByUuid}
${sql}
${orderBy({ field: 'timestamp', direction })}
FORMAT ${part.isFirst ? clickHouse : continued}`,
    params: { ...params, ...person?.params },
  };
}

/**
 * Returns SQL of the user of the person of an event. Behind a join ClickHouse would sort all events before it sends the first: so the
 * owners of the visitors of a part are two arrays.
 */
function personSql(tables: Tables, selection: ExportRequest['selection'], conditions: readonly Sql[]): Sql {
  if (!tables.areLinked) return { sql: 'user_id', params: {} };
  const user = onlyUser(selection);
  if (user !== undefined) return { sql: becameSql(tables, '{export_user:String}'), params: { export_user: user } };
  const ofPart = where([{ sql: "user_id = ''", params: {} }, ...timeConditions(selection), ...conditions]).sql;
  const visitors = `SELECT anonymous_id FROM ${tables.events} ${ofPart}`;
  // A server does not have all events of its visitors.
  const owners = tables.onSeveralServers
    ? `${tables.owners()} WHERE anonymous_id GLOBAL IN (${visitors})`
    : tables.owners({ visitors: `anonymous_id IN (${visitors})` });
  // transform takes no empty arrays.
  const known = `(SELECT (arrayPushFront(groupArray(anonymous_id), ''), arrayPushFront(groupArray(user_id), '')) FROM ${owners})`;
  const sql = becameSql(tables, `if(user_id = '', transform(anonymous_id, ${known}.1, ${known}.2, ''), user_id)`);
  return { sql, params: {} };
}

/** Of how many events at once an export looks up whose their visitors are. For each owner ClickHouse takes almost a kilobyte. */
const PART_EVENTS = 50_000;

/**
 * Returns the statements of an export: one, or where whose visitors are is looked up, one for each {@link PART_EVENTS} events of
 * the time, whatever the filters are. The events of one user need no look, and a file of Parquet has to be of one statement.
 */
export async function* exportStatements(
  queryRunner: Pick<QueryRunner, 'all'>,
  request: ExportRequest,
  context: QueryContext,
): AsyncGenerator<HidingStatement, void, undefined> {
  const isDivided = context.isLinked && request.format !== 'parquet' && onlyUser(request.selection) === undefined;
  let { after } = request;
  for (let isFirst = true; ; isFirst = false) {
    const upTo = isDivided ? await endOfPart(queryRunner, request, after, context) : undefined;
    const part: ExportPart = { after, upTo, isFirst };
    yield { hiding: (tables, hidden) => exportQuery(tables, request, hidden, part) };
    if (!upTo) return;
    after = upTo;
  }
}

/** Returns the last event of a part; undefined: there are no more than a part has. */
async function endOfPart(
  queryRunner: Pick<QueryRunner, 'all'>,
  { selection: { startMs, endMs }, direction }: ExportRequest,
  after: Place | undefined,
  context: QueryContext,
): Promise<Place | undefined> {
  const statement = (tables: Tables): Sql => {
    const ofTime = { startMs, endMs, fields: [], properties: [] };
    const { sql, params } = whereSelected(tables, ofTime, undefined, partConditions(direction, { after }));
    return {
      sql: `SELECT toUnixTimestamp64Milli(timestamp), toString(uuid)
FROM ${tables.events}
${sql}
${orderBy({ field: 'timestamp', direction })}
LIMIT 1 OFFSET ${PART_EVENTS - 1}`,
      params,
    };
  };
  // The export keeps its slot meanwhile.
  const [row] = await queryRunner.all({ kind: 'export_part', urgent: true, ...context, statement });
  return row && { timestampMs: Number(row[0]), uuid: row[1] as string };
}

/** How many bytes of events a block of an export may have. */
const BLOCK_BYTES_MAX = 32 * 1_024 * 1_024;

/** About how much an event has besides its JSON, in bytes. */
const OTHER_BYTES = 512;

/** How many rows the blocks of an export have where events are small. */
const BLOCK_ROWS_MAX = Number(POOL_SETTINGS.exports['max_block_size']);

/**
 * Returns the settings by which the blocks of an export stay within {@link BLOCK_BYTES_MAX}: those of every export when
 * its events are small, else blocks of as few rows as its largest event allows for.
 *
 * Looking for the largest one reads the sizes alone. Filters on properties are left out, since they read the texts, and those
 * on users and organizations. When
 * it takes too long, events count as large.
 *
 * @throws {Problem} as {@link QueryRunner.rows} does, except `query_too_expensive`
 */
export async function blockSettings(
  queryRunner: Pick<QueryRunner, 'all'>,
  { selection }: Pick<ExportRequest, 'selection'>,
  context: QueryContext,
): Promise<QuerySettings> {
  const rows = rowsOfBlock(await largestEvent(queryRunner, selection, context));
  return rows >= BLOCK_ROWS_MAX ? {} : { ...LARGE_ROWS_SETTINGS, max_block_size: String(rows) };
}

function rowsOfBlock(largestBytes: number | undefined): number {
  if (largestBytes === undefined) return LARGE_ROWS_BLOCK;
  return Math.max(1, Math.floor(BLOCK_BYTES_MAX / (largestBytes + OTHER_BYTES)));
}

/** Returns the bytes of JSON in the largest of the events; `undefined` when that takes too long. */
async function largestEvent(
  queryRunner: Pick<QueryRunner, 'all'>,
  selection: ExportRequest['selection'],
  context: QueryContext,
): Promise<number | undefined> {
  const fields = selection.fields.filter(({ field }) => !isOwnerTime(field));
  const statement = (tables: Tables): Sql => {
    const { sql, params } = whereSelected(tables, { ...selection, fields, properties: [] }, undefined);
    return { sql: `SELECT max(json_bytes) FROM ${tables.eventSizes}\n${sql}`, params };
  };
  try {
    const [row] = await queryRunner.all({
      kind: 'event_sizes',
      statement,
      ...context,
      ...REPORT,
    });
    return row?.[0] as number;
  } catch (error) {
    if (error instanceof Problem && error.code === 'query_too_expensive') return undefined;
    throw error;
  }
}

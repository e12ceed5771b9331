import { Problem } from '@sluice/shared/http/problem';
import {
  afterSortKey,
  EVENT_FIELDS,
  type EventColumnType,
  isOwnerTime,
  orderBy,
  whereSelected,
} from '../../records/records.ts';
import {
  LARGE_ROWS_BLOCK,
  LARGE_ROWS_SETTINGS,
  POOL_SETTINGS,
  type QueryContext,
  type QueryRunner,
  type QuerySettings,
  type Sql,
  type Tables,
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

const RECORD = `concat('{', ${EVENT_FIELDS.map(
  ([field, { column, type }], index) => `'${index === 0 ? '' : ','}"${field}":', ${JSON_SQL[type](column)}`,
).join(', ')}, '}')`;

/**
 * Returns the query for an export, with its FORMAT. ClickHouse writes the records: what query-api need not parse, it
 * forwards several times faster.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function exportQuery(
  tables: Tables,
  { selection, format, direction, after }: ExportRequest,
  hidden: Sql | undefined,
): Sql {
  const order = { field: 'timestamp', direction } as const;
  const afterLast = after ? [afterSortKey(order, { ...after, value: after.timestampMs })] : [];
  const { sql, params } = whereSelected(tables, selection, hidden, afterLast);
  const columns =
    format === 'ndjson'
      ? RECORD
      : EVENT_FIELDS.map(([field, { column, type }]) => `${COLUMN_SQL[type](column, format)} AS \`${field}\``).join(
          ', ',
        );
  return {
    sql: `SELECT ${columns}
FROM ${tables.eventsByUuid}
${sql}
${orderBy(order)}
FORMAT ${formatOf(format).clickHouse}`,
    params,
  };
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

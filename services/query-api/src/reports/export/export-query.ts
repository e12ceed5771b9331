import { EVENT_FIELDS, type EventColumnType } from '../../records/events/event-columns.ts';
import { afterSortKey, orderBy } from '../../records/events/event-order-sql.ts';
import { whereSelected } from '../../records/events/event-selection.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { type ExportFormat, formatOf } from './export-formats.ts';
import type { ExportRequest } from './export-parameters.ts';

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
  const { sql, params } = whereSelected(selection, hidden, afterLast);
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

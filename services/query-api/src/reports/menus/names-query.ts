import {
  type EventSelection,
  filterConditions,
  selectionConditions,
  whereSelected,
} from '../../records/events/event-selection.ts';
import { shownConditions } from '../../store/deletions/hidden-events.ts';
import type { QuerySettings } from '../../store/query-settings.ts';
import { type Sql, where } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { countedRanges, DAYS, HOURS, isCountedByHour } from '../hour-counts.ts';

/** A column of names: it has few values, and the projections that count events have it. */
export type NameColumn = 'event' | 'type';

/** What to count: the events of a selection by `columns`, where the first of these begins with `prefix`. */
export interface NamesRequest {
  readonly selection: EventSelection;
  readonly columns: readonly [NameColumn, ...NameColumn[]];
  /** Empty for all names. */
  readonly prefix: string;
  readonly limit: number;
}

/** Groups are few, and those of one name lie anywhere. */
export const NAMES_SETTINGS: QuerySettings = { optimize_aggregation_in_order: '0' };

/**
 * Returns the query for names by their count: the columns, the count, the first and the last timestamp, then the first
 * and the last timestamp of hidden events among them. Times are in milliseconds, 0 where nothing is hidden.
 *
 * Events that are selected by type, name and dates alone are counted by projections, and hidden ones are
 * subtracted. A projection does not know which of its times are those of hidden events: {@link shownTimesQuery} does.
 * All of it sees one state of the table.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function namesQuery(
  tables: Tables,
  { selection, columns, prefix, limit }: NamesRequest,
  hidden: Sql | undefined,
): Sql {
  // Of other servers, two counts would not see the same state.
  const byHour = isCountedByHour(selection) && !(hidden && tables.onSeveralServers);
  const begins = startsWith(columns[0], prefix);
  const shown = byHour
    ? countedRanges(tables, selection, [DAYS, HOURS]).map(({ events, within }) => ({
        events,
        conditions: [...filterConditions(selection), within],
      }))
    : [{ events: tables.events, conditions: [...selectionConditions(selection), ...shownConditions(hidden)] }];
  const counts = shown.map(({ events, conditions }) => countedNames(events, columns, [...conditions, ...begins], ''));
  if (byHour && hidden)
    counts.push(countedNames(tables.events, columns, [...selectionConditions(selection), ...begins, hidden], '-'));
  return {
    sql: `SELECT ${columns.join(', ')}, sum(counted) AS total,
  toUnixTimestamp64Milli(minIf(first, counted > 0)), toUnixTimestamp64Milli(maxIf(last, counted > 0)),
  toUnixTimestamp64Milli(minIf(first, counted < 0)), toUnixTimestamp64Milli(maxIf(last, counted < 0))
FROM (
${counts.map(({ sql }) => sql).join('\nUNION ALL\n')}
)
GROUP BY ${columns.join(', ')}
HAVING total > 0
ORDER BY total DESC, ${columns.join(', ')}
LIMIT {names_max:UInt64}`,
    params: Object.assign({}, ...counts.map(({ params }) => params), { names_max: limit }),
  };
}

/** Returns the query for the first and the last timestamp, in milliseconds, of the events of some names that are not hidden. */
export function shownTimesQuery(
  tables: Tables,
  selection: EventSelection,
  names: readonly string[],
  hidden: Sql | undefined,
): Sql {
  const named: Sql = { sql: 'event IN {names:Array(String)}', params: { names } };
  const { sql, params } = whereSelected(selection, hidden, [named]);
  return {
    sql: `SELECT event, type, toUnixTimestamp64Milli(min(timestamp)), toUnixTimestamp64Milli(max(timestamp))
FROM ${tables.eventsByUuid}
${sql}
GROUP BY event, type`,
    params,
  };
}

/** The columns and aggregates are those of the projections, which ClickHouse chooses by itself. */
function countedNames(events: string, columns: readonly NameColumn[], conditions: readonly Sql[], sign: '' | '-'): Sql {
  const { sql, params } = where(conditions);
  return {
    sql: `SELECT ${columns.join(', ')}, ${sign}toInt64(count()) AS counted, min(timestamp) AS first, max(timestamp) AS last
FROM ${events}
${sql}
GROUP BY ${columns.join(', ')}`,
    params,
  };
}

function startsWith(column: NameColumn, prefix: string): readonly Sql[] {
  return prefix === ''
    ? []
    : [{ sql: `startsWith(${column}, {names_prefix:String})`, params: { names_prefix: prefix } }];
}

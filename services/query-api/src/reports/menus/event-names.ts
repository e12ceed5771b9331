import {
  type EventSelection,
  filterConditions,
  groupsOf,
  ownersIn,
  selectionConditions,
  whereSelected,
} from '../../records/records.ts';
import {
  type HidingStatement,
  type QueryContext,
  type QueryRunner,
  type QuerySettings,
  type Sql,
  shownConditions,
  type Tables,
  where,
} from '../../store/store.ts';
import { countedRanges, DAYS, HOURS, isCountedByHour } from '../hour-counts.ts';
import { REPORT } from '../report-runner.ts';

/** The events of one name and type. Times in milliseconds. */
export interface EventName {
  readonly event: string;
  readonly type: string;
  readonly count: number;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** What a menu is about: the events, and what its entries begin with. */
export interface MenuRequest {
  readonly selection: EventSelection;
  /** Empty for everything. */
  readonly prefix: string;
  readonly limit: number;
}

type NameRow = [event: string, type: string, count: number, ...TimesOfName, ...TimesOfName];
type TimesOfName = [firstMs: number, lastMs: number];
type TimesRow = [event: string, type: string, ...TimesOfName];

/** Reads names and types of events, those with most events first. Every number is exact. */
export async function readEventNames(
  queryRunner: Pick<QueryRunner, 'all'>,
  request: MenuRequest,
  context: QueryContext,
): Promise<readonly EventName[]> {
  const run = async (hiding: HidingStatement['hiding']) =>
    await queryRunner.all({ kind: 'event_names', settings: NAMES_SETTINGS, ...context, ...REPORT, hiding });
  let subtractsHidden = false;
  const rows = (await run((tables, hidden) => {
    subtractsHidden = hidden !== undefined;
    return namesQuery(tables, { ...request, columns: ['event', 'type'] }, hidden);
  })) as NameRow[];
  const isHidden = ([, , , firstMs, lastMs, hiddenFirstMs, hiddenLastMs]: NameRow) =>
    subtractsHidden && (hiddenFirstMs === firstMs || hiddenLastMs === lastMs);
  const unsure = [...new Set(rows.filter(isHidden).map(([event]) => event))];
  const shown = new Map<string, TimesOfName>();
  for (const names of groupsOf(unsure)) {
    const times = (await run((tables, hidden) =>
      shownTimesQuery(tables, request.selection, names, hidden),
    )) as TimesRow[];
    for (const [event, type, ...seen] of times) shown.set(JSON.stringify([event, type]), seen);
  }
  return rows.flatMap((row) => {
    const [event, type, count, firstMs, lastMs] = row;
    const times = isHidden(row) ? shown.get(JSON.stringify([event, type])) : ([firstMs, lastMs] as const);
    // Without times, the last event of this name was erased between the two queries.
    return times ? [{ event, type, count, firstSeenMs: times[0], lastSeenMs: times[1] }] : [];
  });
}

/** Reads the values of a column with few of them, and in how many events each is. Every number is exact. */
export async function readNameValues(
  queryRunner: Pick<QueryRunner, 'all'>,
  column: NameColumn,
  request: MenuRequest,
  context: QueryContext,
): Promise<readonly { readonly value: string; readonly count: number }[]> {
  const hiding = (tables: Tables, hidden: Sql | undefined) =>
    namesQuery(tables, { ...request, columns: [column] }, hidden);
  const rows = await queryRunner.all({ kind: 'event_names', settings: NAMES_SETTINGS, ...context, ...REPORT, hiding });
  return rows.map(([value, count]) => ({ value: value as string, count: count as number }));
}

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
  const owners = ownersIn(tables, hidden);
  const begins = startsWith(columns[0], prefix);
  const shown = byHour
    ? countedRanges(tables, selection, [DAYS, HOURS]).map(({ events, within }) => ({
        events,
        conditions: [...filterConditions(selection, owners), within],
      }))
    : [{ events: tables.events, conditions: [...selectionConditions(selection, owners), ...shownConditions(hidden)] }];
  const counts = shown.map(({ events, conditions }) => countedNames(events, columns, [...conditions, ...begins], ''));
  if (byHour && hidden)
    counts.push(
      countedNames(tables.events, columns, [...selectionConditions(selection, owners), ...begins, hidden], '-'),
    );
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
  const { sql, params } = whereSelected(tables, selection, hidden, [named]);
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

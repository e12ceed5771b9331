import { type Sql, tables, where } from '../clickhouse/sql.ts';
import { type EventSelection, filterConditions, selectionConditions } from '../events/event-selection.ts';
import type { TimeRange } from '../filters/filter-sql.ts';

const HOUR_MS = 3_600_000;

/** The UTC hour of an event, as the projection by hour has it. `toStartOfHour` knows only hours from 1970 to 2106. */
export const EVENT_HOUR = 'toStartOfInterval(timestamp, toIntervalMillisecond(3600000))';

/** The filters that the projection by hour can answer. */
const HOUR_FIELDS: ReadonlySet<string> = new Set(['type', 'event']);

/** Whether {@link hourCountsQuery} can count these events: they are selected by type, name and dates alone. */
export function isCountedByHour({ fields, properties }: Pick<EventSelection, 'fields' | 'properties'>): boolean {
  return properties.length === 0 && fields.every(({ field }) => HOUR_FIELDS.has(field));
}

/**
 * Returns the query that counts events by groups: a row for each group that has any, with its keys and its count. The
 * whole hours of the range are answered by the projection `by_hour`: ClickHouse reads a row for each hour, type and name of
 * a part instead of each event. The events before and behind them are read, and so are those that are hidden, which are
 * subtracted. All of it sees one state of the table.
 *
 * @param selection must be one that {@link isCountedByHour} accepts
 * @param keys expressions over `type`, `event` and {@link EVENT_HOUR} alone, by the names of their columns
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function hourCountsQuery(
  selection: EventSelection,
  keys: Readonly<Record<string, string>>,
  hidden: Sql | undefined,
): Sql {
  const selected = Object.entries(keys).map(([name, expression]) => `${expression} AS ${name}`);
  const names = Object.keys(keys);
  const groupBy = names.length === 0 ? '' : `GROUP BY ${names.join(', ')}`;
  const count = (conditions: readonly Sql[], sign: '' | '-'): Sql => {
    const { sql, params } = where(conditions);
    const counted = `${sign}toInt64(count()) AS counted`;
    return { sql: `SELECT ${[...selected, counted].join(', ')}\nFROM ${tables.events}\n${sql}\n${groupBy}`, params };
  };
  const filters = filterConditions(selection);
  const counts = hourRanges(selection).map((range) => count([...filters, range], ''));
  if (hidden) counts.push(count([...selectionConditions(selection), hidden], '-'));
  return {
    sql: `SELECT ${[...names, 'sum(counted)'].join(', ')}
FROM (
${counts.map(({ sql }) => sql).join('\nUNION ALL\n')}
)
${groupBy}
HAVING sum(counted) > 0`,
    params: Object.assign({}, ...counts.map(({ params }) => params)),
  };
}

/**
 * Returns the conditions of one range, which have no event in common: of its whole hours, which the projection by hour
 * answers, and of the events before and behind them. There is no condition where there can be no event.
 */
export function hourRanges({ startMs, endMs }: TimeRange): readonly Sql[] {
  const fromMs = startMs === undefined ? undefined : Math.ceil(startMs / HOUR_MS) * HOUR_MS;
  const toMs = endMs === undefined ? undefined : Math.floor((endMs + 1) / HOUR_MS) * HOUR_MS;
  const bounds: Record<string, number | undefined> = { start: startMs, from: fromMs, to: toMs, end: endMs };
  const at = (name: string) => `fromUnixTimestamp64Milli({hours_${name}:Int64})`;
  const condition = (text: string, ...names: readonly string[]): Sql => ({
    sql: text,
    params: Object.fromEntries(names.map((name) => [`hours_${name}`, bounds[name] as number])),
  });
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs) {
    const sql = `timestamp >= ${at('start')} AND timestamp <= ${at('end')}`;
    return [condition(sql, 'start', 'end')];
  }
  const hours = [
    ...(fromMs === undefined ? [] : [condition(`${EVENT_HOUR} >= ${at('from')}`, 'from')]),
    ...(toMs === undefined ? [] : [condition(`${EVENT_HOUR} < ${at('to')}`, 'to')]),
  ];
  const edges = [
    ...(startMs === fromMs
      ? []
      : [condition(`timestamp >= ${at('start')} AND timestamp < ${at('from')}`, 'start', 'from')]),
    ...(toMs === undefined || toMs === (endMs as number) + 1
      ? []
      : [condition(`timestamp >= ${at('to')} AND timestamp <= ${at('end')}`, 'to', 'end')]),
  ];
  return [
    hours.length === 0 ? condition('true') : joined(hours, 'AND'),
    ...(edges.length === 0 ? [] : [joined(edges, 'OR')]),
  ];
}

function joined(conditions: readonly Sql[], operator: 'AND' | 'OR'): Sql {
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(` ${operator} `),
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  };
}

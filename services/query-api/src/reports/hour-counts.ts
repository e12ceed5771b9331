import {
  type EventSelection,
  filterConditions,
  ownersIn,
  selectionConditions,
  type TimeRange,
} from '../records/records.ts';
import { type Sql, shownConditions, type Tables, where } from '../store/store.ts';

/** What a projection counts events by: whole hours or days of UTC. */
export interface CountUnit {
  readonly ms: number;
  /** The start of an event's hour or day, exactly as the projection has it. `toStartOfHour` knows only 1970 to 2106. */
  readonly start: string;
}

export const HOURS = countUnit(3_600_000);

export const DAYS = countUnit(86_400_000);

function countUnit(ms: number): CountUnit {
  return { ms, start: `toStartOfInterval(timestamp, toIntervalMillisecond(${ms}))` };
}

/** The filters that the projections can answer. */
const COUNTED_FIELDS: ReadonlySet<string> = new Set(['type', 'event']);

/** Whether {@link hourCountsQuery} can count these events: they are selected by type, name and dates alone. */
export function isCountedByHour({ fields, properties }: Pick<EventSelection, 'fields' | 'properties'>): boolean {
  return properties.length === 0 && fields.every(({ field }) => COUNTED_FIELDS.has(field));
}

/**
 * Returns the query that counts events by groups: a row for each group that has any, with its keys and its count. The
 * whole days of the range are answered by the projection `by_day`, and the whole hours before and behind them by `by_hour`:
 * ClickHouse reads a row for each of these, type and name of a part instead of each event. The events before and behind the
 * hours are read, and so are those that are hidden, which are subtracted. All of it sees one state of the table.
 *
 * @param selection must be one that {@link isCountedByHour} accepts
 * @param keysOf returns expressions over `type`, `event` and the start of a unit, by the names of their columns
 * @param hidden the condition that the events of pending deletions meet, if there are any
 * @param units the projections to use, the coarsest first: groups must be made of whole units
 */
export function hourCountsQuery(
  tables: Tables,
  selection: EventSelection,
  keysOf: (start: string) => Readonly<Record<string, string>>,
  hidden: Sql | undefined,
  units: readonly CountUnit[],
): Sql {
  const names = Object.keys(keysOf(''));
  const groupBy = names.length === 0 ? '' : `GROUP BY ${names.join(', ')}`;
  const count = (events: string, start: string, conditions: readonly Sql[], sign: '' | '-'): Sql => {
    const { sql, params } = where(conditions);
    const keys = Object.entries(keysOf(start)).map(([name, expression]) => `${expression} AS ${name}`);
    const counted = `${sign}toInt64(count()) AS counted`;
    return { sql: `SELECT ${[...keys, counted].join(', ')}\nFROM ${events}\n${sql}\n${groupBy}`, params };
  };
  const owners = ownersIn(tables, hidden);
  const filters = filterConditions(selection, owners);
  const selected = selectionConditions(selection, owners);
  // Of other servers, two counts would not see the same state.
  const isOne = hidden !== undefined && tables.onSeveralServers;
  const counts = isOne
    ? [count(tables.events, HOURS.start, [...selected, ...shownConditions(hidden)], '')]
    : countedRanges(tables, selection, units).map(({ events, start, within }) =>
        count(events, start, [...filters, within], ''),
      );
  if (hidden && !isOne) counts.push(count(tables.events, HOURS.start, [...selected, hidden], '-'));
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

/** Some of the events of a range, and the expression of the unit by whose start they may be grouped. */
interface CountedRange {
  /** What to count FROM. */
  readonly events: string;
  readonly start: string;
  readonly within: Sql;
}

/** From `fromMs` on, and before `toMs`; without an end where it is undefined. */
interface Span {
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

/**
 * Splits a range into ranges that have no event in common: its whole units, the coarsest first, each of which a projection
 * answers, and the events before and behind them.
 */
export function countedRanges(
  tables: Tables,
  { startMs, endMs }: TimeRange,
  units: readonly CountUnit[],
): readonly CountedRange[] {
  const ranges: CountedRange[] = [];
  let rest: readonly Span[] = [{ fromMs: startMs, toMs: endMs === undefined ? undefined : endMs + 1 }];
  for (const { ms, start } of units) {
    const split = rest.map((span) => splitSpan(span, ms));
    const whole = split.flatMap((parts) => parts.whole);
    if (whole.length > 0)
      ranges.push({ events: tables.eventsByUnit(start), start, within: withinSpans(whole, start, ms) });
    rest = split.flatMap((parts) => parts.rest);
  }
  if (rest.length > 0) {
    ranges.push({ events: tables.events, start: HOURS.start, within: withinSpans(rest, 'timestamp', 0) });
  }
  return ranges;
}

function splitSpan(span: Span, unitMs: number): { whole: readonly Span[]; rest: readonly Span[] } {
  const fromMs = span.fromMs === undefined ? undefined : Math.ceil(span.fromMs / unitMs) * unitMs;
  const toMs = span.toMs === undefined ? undefined : Math.floor(span.toMs / unitMs) * unitMs;
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs) return { whole: [], rest: [span] };
  const before = { fromMs: span.fromMs, toMs: fromMs };
  const behind = { fromMs: toMs, toMs: span.toMs };
  return {
    whole: [{ fromMs, toMs }],
    rest: [before, behind].filter((edge) => edge.fromMs !== edge.toMs),
  };
}

/** The condition that a time lies in one of some spans. `id` tells the parameters of several conditions apart. */
function withinSpans(spans: readonly Span[], time: string, id: number): Sql {
  const params: Record<string, number> = {};
  const compared = (operator: '>=' | '<', ms: number | undefined): readonly string[] => {
    if (ms === undefined) return [];
    const name = `within_${id}_${Object.keys(params).length}`;
    params[name] = ms;
    return [`${time} ${operator} fromUnixTimestamp64Milli({${name}:Int64})`];
  };
  const conditions = spans.map(({ fromMs, toMs }) => [...compared('>=', fromMs), ...compared('<', toMs)]);
  if (conditions.some((bounds) => bounds.length === 0)) return { sql: 'true', params: {} };
  return { sql: conditions.map((bounds) => `(${bounds.join(' AND ')})`).join(' OR '), params };
}

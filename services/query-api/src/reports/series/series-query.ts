import { EVENT_COLUMNS, numberOfJson, type ReadEvents, readEvents } from '../../records/records.ts';
import { BoundParameters, type Sql, type Tables } from '../../store/store.ts';
import { eventsWithOwners, type GroupKey, keyOfEvent, keyOrder, propertiesOfKeys } from '../group-key.ts';
import { type CountUnit, DAYS, HOURS, hourCountsQuery, isCountedByHour } from '../hour-counts.ts';
import { personsRead } from '../people.ts';
import type { ReportSelection } from '../report-selection.ts';
import { DISTINCT, type Measure, ranksGroups, type SeriesRange, type SeriesRequest } from './series-parameters.ts';

// How a series is computed. ClickHouse aggregates the events of each bucket and group into a cell with a state of the
// measure; the states of cells are merged for totals and for all groups that are not shown. So events are read once.
//
//   events ── group by bucket, keys ──▶ cells ── ranked by their groups ──▶ places ──▶ a row for each place
//
// Where there are too many cells, the largest groups are found first, and events of all others share the cells of one
// place.

/** What to compute of a request: one range, and the groups of it. */
export interface SeriesPart {
  readonly request: SeriesRequest;
  readonly range: SeriesRange;
  /** Whether distinct counts may be estimates. */
  readonly approximate: boolean;
}

/** A part, the tables to read, and the condition that the events of pending deletions meet, if there are any. */
export interface HidingPart extends SeriesPart {
  readonly tables: Tables;
  readonly hidden: Sql | undefined;
}

/** The place of everything together. The groups follow, from 1 on; behind the last one are all others together. */
export const TOTAL_PLACE = 0;

/** A number as ClickHouse writes it: one that is beyond the range of 64-bit floats is a text, such as `inf`. */
export type Written = number | string | null;

/**
 * A row of a place: its group, its value over the range, and its cells, each the start of a bucket and a value. The group
 * is its hash and its keys; it is empty of places that are no group, and where the groups were given.
 */
export type PlaceRow = readonly [
  place: number,
  group: readonly string[],
  total: Written,
  cells: readonly (readonly [number, Written])[],
];

const EVENT_MS = 'toUnixTimestamp64Milli(timestamp)';

/**
 * Returns the query for a series whose largest groups it finds itself; without `groupBy` all events are one group. Its
 * rows are {@link PlaceRow}s.
 */
export function seriesQuery(part: HidingPart): Sql {
  const { groupBy, groups } = part.request;
  const parameters = new BoundParameters('s');
  const events = eventsOf(part);
  const measure = measureSql(part.request.measure, events, parameters, part);
  if (groupBy.length === 0) {
    return placesQuery(cellsQuery(part, events, { place: 'toUInt8(1)' }, measure, parameters), measure, NO_GROUP);
  }
  const names = columnsOf(groupBy);
  const cells = cellsQuery(part, events, keysOf(groupBy, events, parameters), measure, parameters);
  return placesQuery(
    {
      sql: `SELECT place, group, cell.1 AS bucket, cell.2 AS state
FROM (
SELECT
  least(row_number() OVER (ORDER BY ${groupOrder(part)}), {groups:UInt8} + 1) AS place,
  ${groupOf(names)} AS group,
  cells
FROM (
SELECT ${names.join(', ')}, ${measure.merged} AS value, sum(events) AS size, groupArray((bucket, state)) AS cells
FROM (
${cells.sql}
)
GROUP BY ${names.join(', ')}
)
)
ARRAY JOIN cells AS cell`,
      params: { ...cells.params, groups },
    },
    measure,
    'any(group)',
  );
}

/** Returns the query for the largest groups: the hash and the keys of each, the largest first. */
export function largestGroupsQuery(part: HidingPart): Sql {
  const { groupBy, groups } = part.request;
  const parameters = new BoundParameters('s');
  const events = eventsOf(part);
  const measure = measureSql(part.request.measure, events, parameters, part);
  const names = columnsOf(groupBy);
  const cells = cellsQuery(part, events, keysOf(groupBy, events, parameters), measure, parameters, false);
  return {
    sql: `SELECT ${groupOf(names)}
FROM (
SELECT ${names.join(', ')}, ${measure.merged} AS value, sum(events) AS size
FROM (
${cells.sql}
)
GROUP BY ${names.join(', ')}
)
ORDER BY ${groupOrder(part)}
LIMIT {groups:UInt8}`,
    params: { ...cells.params, groups },
  };
}

/** Returns the query for a series of given groups, by their hashes. Its rows are {@link PlaceRow}s. */
export function givenGroupsQuery(part: HidingPart, hashes: readonly string[]): Sql {
  const parameters = new BoundParameters('s');
  const events = eventsOf(part);
  const measure = measureSql(part.request.measure, events, parameters, part);
  const hash = `sipHash64(${Object.values(keysOf(part.request.groupBy, events, parameters)).join(', ')})`;
  const given = `arrayMap(hash -> toUInt64(hash), ${parameters.texts(hashes)})`;
  const others = `toUInt32(length(${given}) + 1)`;
  const place =
    hashes.length === 0 ? 'toUInt8(1)' : `transform(${hash}, ${given}, arrayEnumerate(${given}), ${others})`;
  return placesQuery(cellsQuery(part, events, { place }, measure, parameters), measure, NO_GROUP);
}

/**
 * Returns the query for the counts of a part by bucket and group: `bucket`, `key_0` and further keys, and `events`. They are of
 * all groups, however many there are.
 */
export function countsQuery(part: HidingPart): Sql {
  const parameters = new BoundParameters('s');
  const events = eventsOf(part);
  const measure = measureSql({ kind: 'count' }, events, parameters, part);
  return cellsQuery(part, events, keysOf(part.request.groupBy, events, parameters), measure, parameters);
}

/** What a part reads of events. */
type PartEvents = ReadEvents<ReportSelection>;

function eventsOf({ request: { selection, groupBy, measure }, tables }: HidingPart): PartEvents {
  const names = [...propertiesOfKeys(groupBy), ...('property' in measure ? [measure.property] : [])];
  const persons = personsRead({ by: measure.kind === 'users' ? 'user' : undefined }, groupBy);
  return readEvents(tables, selection, names, { persons });
}

/** The cells of a range: `bucket`, the keys, `events`, and `state`. */
function cellsQuery(
  part: HidingPart,
  read: PartEvents,
  keys: Readonly<Record<string, string>>,
  { state }: MeasureSql,
  parameters: BoundParameters,
  byBucket = true,
): Sql {
  const { request, range, tables, hidden } = part;
  const { startMs, endMs } = range;
  const params = { buckets: range.buckets };
  const columns = (ms: string) => (byBucket ? { bucket: `roundDown(${ms}, {buckets:Array(Int64)})`, ...keys } : keys);
  if (isReadByHour(part)) {
    const names = Object.keys(columns(''));
    const units = areWhole(range, DAYS) ? [DAYS, HOURS] : [HOURS];
    const keysOf = (start: string) => columns(`toUnixTimestamp64Milli(${start})`);
    const counts = hourCountsQuery(tables, { ...read.selection, startMs, endMs }, keysOf, hidden, units);
    return {
      sql: `SELECT ${names.join(', ')}, \`sum(counted)\` AS events, events AS state FROM (\n${counts.sql}\n)`,
      params: { ...counts.params, ...parameters.params, ...params },
    };
  }
  const { from, where } = read.selected({ startMs, endMs }, hidden);
  const events = eventsWithOwners(tables, from, request.groupBy);
  const expressions = Object.entries(columns(EVENT_MS)).map(([name, sql]) => `${sql} AS ${name}`);
  return {
    sql: `SELECT
  ${[...expressions, 'count() AS events', `${state} AS state`].join(',\n  ')}
FROM ${events.sql}
${where.sql}
GROUP BY ${Object.keys(columns('')).join(', ')}`,
    params: { ...events.params, ...where.params, ...parameters.params, ...params },
  };
}

/** Whether projections can count these cells: buckets are whole hours of UTC, and groups are names or types. */
function isReadByHour({ request: { measure, groupBy, selection }, range }: SeriesPart): boolean {
  const areNames = groupBy.every((key) => 'field' in key && (key.field === 'event' || key.field === 'type'));
  return measure.kind === 'count' && areWhole(range, HOURS) && areNames && isCountedByHour(selection);
}

/** Whether every bucket begins where a unit begins, so that no unit lies in two of them. */
function areWhole({ buckets }: SeriesRange, { ms }: CountUnit): boolean {
  return buckets.length === 1 || buckets.every((start) => start % ms === 0);
}

/** Makes a row of each place from the cells of places: `place`, `bucket`, `state`, and `group` where groups were found. */
function placesQuery(cells: Sql, { merged }: MeasureSql, group: 'any(group)' | typeof NO_GROUP): Sql {
  return {
    sql: `SELECT
  place,
  anyIf(group, whole),
  anyIf(value, whole),
  groupArrayIf((bucket, value), NOT whole)
FROM (
SELECT ${group} AS group, place, bucket, grouping(bucket) = 1 AS whole, ${merged} AS value
FROM (
${cells.sql}
)
GROUP BY GROUPING SETS ((place, bucket), (place), ())
)
GROUP BY place`,
    params: cells.params,
  };
}

/** Of places whose groups are not found by the query. */
const NO_GROUP = '[]::Array(String)';

function columnsOf(groupBy: readonly GroupKey[]): readonly string[] {
  return groupBy.map((_, index) => `key_${index}`);
}

function keysOf(
  groupBy: readonly GroupKey[],
  events: PartEvents,
  parameters: BoundParameters,
): Readonly<Record<string, string>> {
  return Object.fromEntries(groupBy.map((key, index) => [`key_${index}`, keyOfEvent(key, index, events, parameters)]));
}

function groupOf(names: readonly string[]): string {
  return `[toString(sipHash64(${names.join(', ')})), ${names.map((name) => `toString(${name})`).join(', ')}]`;
}

function groupOrder({ request: { measure, groupBy } }: SeriesPart): string {
  const size = ranksGroups(measure) ? 'value' : 'size';
  return [`${size} DESC`, ...groupBy.flatMap((key, index) => keyOrder(key, `key_${index}`))].join(', ');
}

/** Distinct counts up to this are exact, also where memory does not allow for exact ones of any size. */
export const EXACT_DISTINCT_MAX = 100_000;

/** Quantiles by their names. Between two values they are interpolated, as `PERCENTILE.INC` of spreadsheets is. */
const QUANTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;

/** A measure in SQL. States of parts are merged, so that no total is a sum of numbers that do not add up. */
export interface MeasureSql {
  /** Aggregates events into a state. */
  readonly state: string;
  /** Aggregates states, in the column `state`, into the number of all their events. */
  readonly merged: string;
}

/** Returns the SQL of a measure of a part. Where that asks for persons, visitors of nobody count as users. */
function measureSql(
  measure: Measure,
  events: PartEvents,
  parameters: BoundParameters,
  { approximate, tables }: Pick<HidingPart, 'approximate' | 'tables'>,
): MeasureSql {
  if (measure.kind === 'count') return { state: 'count()', merged: 'sum(state)' };
  if (!('property' in measure)) {
    const isVisitor = measure.kind === 'users' && tables.arePersons;
    const column = EVENT_COLUMNS[DISTINCT[measure.kind]].column;
    return distinctSql(isVisitor ? visitorsOf(events) : identifiersOf(column), approximate);
  }
  const { kind, property } = measure;
  const number = numberOfJson(events.valueOf(property, parameters));
  switch (kind) {
    case 'sum':
      return { state: `sumKahanState(${number})`, merged: 'ifNull(sumKahanMerge(state), 0)' };
    case 'avg':
    case 'min':
    case 'max':
      return { state: `${kind}State(${number})`, merged: `${kind}Merge(state)` };
    default: {
      const quantile = (combinator: string) => `quantileExactInclusive${combinator}(${QUANTILES[kind]})`;
      return { state: `${quantile('State')}(${number})`, merged: `${quantile('Merge')}(state)` };
    }
  }
}

/** What is counted once. */
interface Identifiers {
  /** A number of 64 bits. */
  readonly number: string;
  /** Whether an event has one. */
  readonly exists: string;
}

function identifiersOf(column: string): Identifiers {
  return { number: `sipHash64(${column})`, exists: `${column} != ''` };
}

/** Users, and those visitors of whom it is not known whose they are. */
function visitorsOf({ person }: PartEvents): Identifiers {
  const number = person.numberOfVisitors;
  return { number, exists: `${number} != 0` };
}

/** Hashes of 64 bits take the memory of a number. Among a million, two are the same once in 37 million times. */
function distinctSql({ number, exists }: Identifiers, approximate: boolean): MeasureSql {
  const hashed = `${number}, ${exists}`;
  if (!approximate) return { state: `uniqExactStateIf(${hashed})`, merged: 'uniqExactMerge(state)' };
  const [exact, estimate] = [`(${EXACT_DISTINCT_MAX + 1})`, '(17)'];
  const counted = `length(groupUniqArrayMerge${exact}(state.1))`;
  // An estimate is never shown as a number that would be exact.
  const estimated = `greatest(uniqCombined64Merge${estimate}(state.2), ${EXACT_DISTINCT_MAX + 1})`;
  return {
    state: `(groupUniqArrayStateIf${exact}(${hashed}), uniqCombined64StateIf${estimate}(${hashed}))`,
    merged: `if(${counted} <= ${EXACT_DISTINCT_MAX}, ${counted}, ${estimated})`,
  };
}

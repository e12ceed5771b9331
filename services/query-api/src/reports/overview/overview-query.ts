import { EVENT_COLUMNS, type EventSelection, whereSelected } from '../../records/records.ts';
import type { Sql, Tables } from '../../store/store.ts';
import { countsQuery, type HidingPart } from '../series/series-query.ts';

// How unusual a count is. It is compared with the counts of the same weekday in the weeks before: what is between the lowest
// and the highest of these, and what chance adds to them, is expected. The root of a count that only chance moves has the same
// spread whatever its size, so that a change from 1 to 3 is as usual as one from 1,000 to 1,060.
//
//   expected          lowest ───── highest          chance: 3 standard deviations
//            ├ chance ┤                ├ chance ┤

/** Whole days of an overview: yesterday, and the four weeks before it. */
export const OVERVIEW_DAYS = 29;

export const WEEK_DAYS = 7;

/** How many weeks a workspace must have before yesterday: what one week had says too little. */
export const WEEKS_MIN = 2;

/** By how many standard deviations an unusual count lies outside of what there was. */
export const UNUSUAL_DEVIATIONS = 3;

/** A standard deviation is at least this part of a count, so that large ones are not unusual by less than a seventh. */
const SPREAD_MIN = 0.05;

/** How many names of events, and how many values of properties, are compared by their lines at most. */
export const CHANGES_MAX = 20;

/** How many of the most frequent events there are. */
export const TOP_EVENTS_MAX = 10;

/** A value is compared where its event was sampled so often on each of the days. */
const SAMPLED_MIN = 20;

/** A value is compared that was found so often on one of the days: fewer are never unusual. */
const FOUND_MIN = 5;

/** How many properties of an event are looked at, and how long their names and values are at most, in bytes. */
const PROPERTIES_MAX = 32;
const NAME_BYTES_MAX = 100;
const VALUE_BYTES_MAX = 100;

/** Longer objects are left out, in bytes. */
const OBJECT_BYTES_MAX = 16_384;

/** What a row has of a count: those of all days, what was expected yesterday, and how far outside it was. */
export type Compared = readonly [counts: readonly number[], from: number, to: number, deviation: number];

export type NameRow = readonly [event: string, ...Compared];

/** `name` and `value` are those of the property, `value` as JSON; `sizes` has the events of this name of each day. */
export type ValueRow = readonly [event: string, name: string, value: string, sizes: readonly number[], ...Compared];

/** Stabilises the variance of a count (Anscombe): its standard deviation is 1 where only chance moves it. */
function root(count: string): string {
  return `2 * sqrt(${count} + 3 / 8)`;
}

function spread(count: string): string {
  return `greatest(1, ${SPREAD_MIN} * sqrt(${count}))`;
}

/** The count whose root is so many deviations from that of another one. */
function countAt(count: string, deviations: number): string {
  return `greatest(0, pow(greatest(0, ${root(count)} + ${deviations} * ${spread(count)}), 2) / 4 - 3 / 8)`;
}

/** Compares `here` with `lowest` and `highest`: `expected_from`, `expected_to` and `deviation`. */
const COMPARED = `${countAt('lowest', -UNUSUAL_DEVIATIONS)} AS expected_from,
  ${countAt('highest', UNUSUAL_DEVIATIONS)} AS expected_to,
  greatest(
    (${root('here')} - (${root('highest')})) / ${spread('highest')},
    (${root('lowest')} - (${root('here')})) / ${spread('lowest')}
  ) AS deviation`;

/** The counts of all days, from rows with a `bucket` and its `events`. */
const COUNTS_OF_DAYS = `groupArray((bucket, events)) AS cells,
  arrayMap(day -> toUInt64(arraySum(cell -> if(cell.1 = day, cell.2, 0), cells)), {days:Array(Int64)}) AS counts`;

/** The same weekday in each of the weeks before yesterday, of an array with all days. */
function weekdaysOf(counts: string): string {
  return `arrayMap(week -> ${counts}[${OVERVIEW_DAYS} - ${WEEK_DAYS} * week], range(1, {weeks:UInt8} + 1))`;
}

/**
 * Returns the query for the names of events that are unusual or frequent yesterday: the most unusual first, up to
 * {@link CHANGES_MAX}, and {@link TOP_EVENTS_MAX}. Its rows are {@link NameRow}s.
 *
 * @param part counts by day and name
 * @param weeks how many weeks before yesterday to compare with, at least 1
 */
export function namesQuery(part: HidingPart, weeks: number): Sql {
  const counts = countsQuery(part);
  return {
    sql: `SELECT name, counts, ceil(expected_from), floor(expected_to), deviation
FROM (
SELECT
  name, counts, here, ${COMPARED},
  row_number() OVER (ORDER BY deviation DESC, name) AS unusual_place,
  row_number() OVER (ORDER BY here DESC, name) AS frequent_place
FROM (
SELECT
  toString(key_0) AS name,
  ${COUNTS_OF_DAYS},
  counts[${OVERVIEW_DAYS}] AS here,
  arrayMin(${weekdaysOf('counts')}) AS lowest,
  arrayMax(${weekdaysOf('counts')}) AS highest
FROM (
${counts.sql}
)
GROUP BY key_0
HAVING name != ''
)
)
WHERE (unusual_place <= ${CHANGES_MAX} AND deviation > ${UNUSUAL_DEVIATIONS}) OR (frequent_place <= ${TOP_EVENTS_MAX} AND here > 0)
ORDER BY deviation DESC, name`,
    params: { ...counts.params, days: part.range.buckets, weeks },
  };
}

/** From `fromMs` on, and before `toMs`. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Returns the query for values of properties whose share of the events of one name is unusual yesterday, the most unusual first.
 * Its rows are {@link ValueRow}s. A value that several names have is that of the most unusual one.
 *
 * @param days when each day begins
 * @param spans the times whose events are looked at
 */
export function valuesQuery(
  tables: Tables,
  hidden: Sql | undefined,
  selection: EventSelection,
  days: readonly number[],
  spans: readonly Span[],
  weeks: number,
): Sql {
  const { properties } = EVENT_COLUMNS;
  const ofSize: Sql = { sql: `length(${properties.column}) <= ${OBJECT_BYTES_MAX} AND event != ''`, params: {} };
  const selected = whereSelected(tables, selection, hidden, [withinSpans(spans), ofSize]);
  const scaled = (counts: string) => `arrayMap((count, size) -> count * smallest / size, ${counts}, sizes)`;
  return {
    sql: `SELECT
  event, name, value, sizes, counts,
  ceil(expected_from * sizes[${OVERVIEW_DAYS}] / smallest), floor(expected_to * sizes[${OVERVIEW_DAYS}] / smallest), deviation
FROM (
SELECT
  event, name, value, sizes, counts, smallest,
  ${scaled('counts')} AS of_smallest,
  of_smallest[${OVERVIEW_DAYS}] AS here,
  arrayMin(${weekdaysOf('of_smallest')}) AS lowest,
  arrayMax(${weekdaysOf('of_smallest')}) AS highest,
  ${COMPARED}
FROM (
SELECT
  event, name, value, counts,
  anyIf(counts, name = '') OVER (PARTITION BY event) AS sizes,
  least(sizes[${OVERVIEW_DAYS}], arrayMin(${weekdaysOf('sizes')})) AS smallest
FROM (
SELECT
  event, name, value,
  ${COUNTS_OF_DAYS}
FROM (
SELECT event, bucket, pair.1 AS name, pair.2 AS value, count() AS events
FROM (
SELECT
  event,
  roundDown(toUnixTimestamp64Milli(timestamp), {days:Array(Int64)}) AS bucket,
  arrayDistinct(arrayFilter(
    pair -> pair.1 != '' AND length(pair.1) <= ${NAME_BYTES_MAX} AND length(pair.2) <= ${VALUE_BYTES_MAX}
      AND NOT match(pair.2, '^[\\\\[{]|^"\\\\d{4}-\\\\d\\\\d'),
    JSONExtractKeysAndValuesRaw(${properties.column})
  )) AS scalars,
  arrayPushFront(arraySlice(scalars, 1, ${PROPERTIES_MAX}), ('', '')) AS pairs
FROM ${tables.events}
${selected.sql}
)
ARRAY JOIN pairs AS pair
GROUP BY event, bucket, name, value
)
GROUP BY event, name, value
HAVING name = '' OR greatest(counts[${OVERVIEW_DAYS}], arrayMax(${weekdaysOf('counts')})) >= ${FOUND_MIN}
)
)
WHERE name != '' AND smallest >= ${SAMPLED_MIN}
)
WHERE deviation > ${UNUSUAL_DEVIATIONS}
ORDER BY deviation DESC, event, name, value
LIMIT 1 BY name, value
LIMIT ${CHANGES_MAX}`,
    params: { ...selected.params, days, weeks },
  };
}

function withinSpans(spans: readonly Span[]): Sql {
  const params: Record<string, number> = {};
  const within = spans.map(({ fromMs, toMs }, index) => {
    params[`from_${index}`] = fromMs;
    params[`to_${index}`] = toMs;
    const [from, to] = ['from', 'to'].map((name) => `fromUnixTimestamp64Milli({${name}_${index}:Int64})`);
    return `(timestamp >= ${from} AND timestamp < ${to})`;
  });
  return { sql: within.join(' OR '), params };
}

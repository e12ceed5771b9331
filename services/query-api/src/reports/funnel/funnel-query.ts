import {
  byUsers,
  filterConditions,
  type OwnerSource,
  ownersIn,
  type ReadEvents,
  readEvents,
  TIME_MS_MAX,
} from '../../records/records.ts';
import { BoundParameters, type Sql, type Tables } from '../../store/store.ts';
import { eventsWithOwners, groupCondition, keyOfEvent, keyOrder, propertiesOfKeys } from '../group-key.ts';
import { EVENT_PLACE, MS_BEFORE_1970, PLACE_TIME_SHIFT, personColumn, personSql, personsRead } from '../people.ts';
import type { ReportSelection } from '../report-selection.ts';
import type { FunnelPeopleRequest, FunnelRequest } from './funnel-parameters.ts';

// How a funnel is computed, for each person (a user or an organization):
//
// 1. ClickHouse collects the person's events of the steps in their order: time, then arrival (ingest-api gives each event of a
//    request a later time of receipt than the one before), then uuid, so that there is one order in any case.
// 2. `starts_n` holds at each event of step n when the latest attempt began that had got to the step before. Of all
//    attempts this one has the most time left. So step n is reached if one of these events comes within the window
//    after its start, and the furthest step is first completed at the first such event.
// 3. All attempts that began within the window before this event, and before the latest one, complete the furthest step
//    at the same event. The earliest of them counts.
// 4. Its steps are the earliest events that fit, one after the other.
//
// Each of these is a pass over arrays as long as the person's list of events: no attempt is followed event by event.

/** The start of no attempt: so long ago that no window includes it. */
const NO_START = 'toInt64(-4611686018427387904)';

/** {@link EVENT_PLACE} with the steps that the event is an event of. */
const POSITION = `${EVENT_PLACE} + matched`;

/** How many groups a funnel has at most. */
export const FUNNEL_GROUPS_MAX = 10;

/**
 * A row of a funnel: whether it is of all groups together, the key of its group, the count of each step, and the median
 * for each step but the first, in milliseconds since the step before.
 */
export type FunnelRow = readonly [
  whole: 0 | 1,
  key: string,
  counts: readonly number[],
  mediansMs: readonly (number | null)[],
];

/**
 * Returns the query for a funnel. Its rows are {@link FunnelRow}s: all groups together first, then the largest groups.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function funnelQuery(tables: Tables, request: FunnelRequest, hidden: Sql | undefined): Sql {
  const { steps, groupBy } = request;
  const indexes = [...steps.keys()];
  const later = indexes.slice(1);
  const attempts = attemptsQuery(tables, request, hidden);
  return {
    sql: `SELECT
  whole,
  if(whole, '', key) AS part,
  [${indexes.map((index) => `countIf(furthest > ${index})`).join(', ')}] AS counts,
  [${later.map((index) => `quantileExactInclusiveIf(0.5)(gaps[${index}], furthest > ${index})`).join(', ')}] AS medians
FROM (
SELECT
  furthest,
  [${later.map((index) => `times[at_${index}] - times[at_${index - 1}]`).join(', ')}] AS gaps,
  ${groupBy ? KEY_OF_ATTEMPT : `''`} AS key
FROM (
${attempts.sql}
)
)
ARRAY JOIN ${groupBy ? '[1, 0]' : '[1]'} AS whole
GROUP BY whole, part
ORDER BY ${['whole DESC', 'counts[1] DESC', ...(groupBy ? keyOrder(groupBy, 'part') : [])].join(', ')}
LIMIT {rows:UInt8}`,
    params: { ...attempts.params, rows: 1 + FUNNEL_GROUPS_MAX },
  };
}

/** The key of the group that an attempt is in. */
export const KEY_OF_ATTEMPT = 'keys[indexOf(firsts, positions[at_0])]';

/**
 * Returns the query for the attempts that count, one of each `person` with an event of the first step: `furthest` is the
 * number of its steps, `times[at_0]` the time of the first one, in milliseconds since {@link MS_BEFORE_1970 1900}.
 *
 * @param listed the condition on those whom the query is to name; default: it tells persons apart, and names nobody
 */
export function attemptsQuery(tables: Tables, request: FunnelRequest, hidden: Sql | undefined, listed?: Sql): Sql {
  const indexes = [...request.steps.keys()];
  const persons = personsQuery(tables, request, hidden, listed);
  const sql = [...furthestStep(indexes), ...indexes.map(chosenEvent)].reduce(
    // A select of its own for every step: ClickHouse copies an expression wherever another one of its select names it.
    (from, columns) => `SELECT *,\n  ${columns.join(',\n  ')}\nFROM (\n${from}\n)`,
    persons.sql,
  );
  return { sql, params: { ...persons.params, within: request.withinMs } };
}

/** The query for the persons with an event of the first step: their events in order, and the keys of the first steps. */
function personsQuery(tables: Tables, request: FunnelRequest, hidden: Sql | undefined, listed: Sql | undefined): Sql {
  const { by, steps, groupBy, withinMs } = request;
  const keys = groupBy ? [groupBy] : [];
  const { selection } = request;
  const ofUsers = steps.map((step) => byUsers(step).ofUsers);
  const areFiltered = ofUsers.some(({ fields, properties }) => fields.length + properties.length > 0);
  const persons = personsRead({ by, areNamed: listed !== undefined || areFiltered }, keys);
  const conditions = steps.flatMap(({ properties }) => properties);
  const read = readEvents(tables, selection, propertiesOfKeys(keys), { persons, conditions });
  const person = personSql(request, read);
  const matched = matchedSteps(request, read, { ...ownersIn(tables, hidden), hasPersons: persons !== undefined });
  const parameters = new BoundParameters('g');
  // Of the events of other steps the key is not computed.
  const key = groupBy && `if(bitTest(matched, 0), ${keyOfEvent(groupBy, 0, read, parameters)}, '')`;
  // Who begins at the end of the range has the whole window.
  const endMs = Math.min(selection.endMs + withinMs, TIME_MS_MAX);
  const { from, where } = read.selected({ startMs: selection.startMs, endMs }, hidden, {
    onEvents: [
      { sql: 'event IN {step_events:Array(String)}', params: { step_events: steps.map(({ event }) => event) } },
    ],
    onPersons: [{ sql: person.exists, params: {} }, { sql: 'matched != 0', params: {} }, ...(listed ? [listed] : [])],
  });
  const events = eventsWithOwners(tables, from, keys);
  return {
    sql: `    WITH
      ${matched.sql} AS matched,
      ${POSITION} AS position
    SELECT
      ${person.key} AS person,
      ${key ? `groupArrayIf(position, bitTest(matched, 0)) AS firsts, groupArrayIf(${key}, bitTest(matched, 0)) AS keys,` : ''}
      arraySort(groupArray(position)) AS positions
    FROM ${events.sql}
    ${where.sql}
    GROUP BY ${person.key}
    HAVING max(bitTest(matched, 0)) = 1`,
    params: { ...events.params, ...where.params, ...matched.params, ...parameters.params },
  };
}

/** The condition that an attempt may begin with an event. */
const IN_RANGE = 'timestamp <= fromUnixTimestamp64Milli({range_end:Int64})';

type StepsRead = Pick<ReadEvents<ReportSelection>, 'holds'>;

/** The steps that an event is an event of, a bit each. */
function matchedSteps({ selection, steps }: FunnelRequest, read: StepsRead, owners: OwnerSource): Sql {
  const bits = steps.map(({ event, fields, properties }, index): Sql => {
    const held = properties.flatMap((filter) => read.holds(filter) ?? []);
    const others = properties.filter((filter) => read.holds(filter) === undefined);
    const conditions = filterConditions({ fields, properties: others }, owners, `s${index}_`);
    const sql = [
      `event = {step_${index}:String}`,
      ...(index === 0 ? [IN_RANGE] : []),
      ...held,
      ...conditions.map((condition) => `(${condition.sql})`),
    ].join(' AND ');
    const params = Object.assign({ [`step_${index}`]: event }, ...conditions.map((condition) => condition.params));
    return { sql: `if(${sql}, ${1 << index}, 0)`, params };
  });
  return {
    sql: bits.map(({ sql }) => sql).join('\n      + '),
    params: Object.assign({ range_end: selection.endMs }, ...bits.map(({ params }) => params)),
  };
}

/** Columns that lead to `furthest`, how many steps were completed, and `completed`, when the last of them was. */
function furthestStep(indexes: readonly number[]): readonly (readonly string[])[] {
  const steps = indexes.map((index) => {
    // Strictly later: no event is a step and the one before.
    const before = index === 0 ? 'times' : `arrayShiftRight(latest_${index - 1}, 1, ${NO_START})`;
    return [
      `arrayMap((mask, start) -> if(bitTest(mask, ${index}), start, ${NO_START}), masks, ${before}) AS starts_${index}`,
      // A later event of a step never has an earlier start.
      `arrayFill(start -> start != ${NO_START}, starts_${index}) AS latest_${index}`,
      `arrayFirstIndex((start, time) -> time - start <= {within:Int64}, starts_${index}, times) AS done_${index}`,
    ];
  });
  return [
    [
      'arrayMap(position -> toUInt8(position), positions) AS masks',
      `arrayMap(position -> toInt64(bitShiftRight(position, ${PLACE_TIME_SHIFT})), positions) AS times`,
    ],
    ...steps,
    [
      `[${indexes.map((index) => `done_${index}`).join(', ')}] AS done`,
      'arrayCount(place -> place > 0, done) AS furthest',
    ],
    ['times[done[furthest]] AS completed'],
  ];
}

/** The event of a step in the attempt that counts; of a step beyond `furthest`, any. */
function chosenEvent(index: number): readonly string[] {
  const [place, column] = index === 0 ? ['time', 'times'] : ['place', 'arrayEnumerate(masks)'];
  const fits = index === 0 ? 'time >= completed - {within:Int64}' : `place > at_${index - 1}`;
  return [`arrayFirstIndex((mask, ${place}) -> bitTest(mask, ${index}) AND ${fits}, masks, ${column}) AS at_${index}`];
}

/** A person, and when the attempt that counts began and got to the step, in milliseconds since 1970. */
export type FunnelPersonRow = readonly [id: string, startedMs: number, reachedMs: number];

/**
 * Returns the query for the people behind a step of a funnel. Its rows are {@link FunnelPersonRow}s, one more than the page
 * has.
 *
 * @param hidden the condition that the events of pending deletions meet, if there are any
 */
export function funnelPeopleQuery(tables: Tables, request: FunnelPeopleRequest, hidden: Sql | undefined): Sql {
  const { funnel, stepsMin, stepsMax, page } = request;
  const after = { sql: `${personColumn(funnel)} > {after:String}`, params: { after: page.afterId } };
  const attempts = attemptsQuery(tables, funnel, hidden, after);
  const inGroup: Sql = funnel.groupBy
    ? groupCondition(funnel.groupBy, KEY_OF_ATTEMPT, request.group)
    : { sql: 'true', params: {} };
  return {
    sql: `SELECT person, times[at_0] - ${MS_BEFORE_1970}, times[at_${stepsMin - 1}] - ${MS_BEFORE_1970}
FROM (
${attempts.sql}
)
WHERE furthest BETWEEN {steps_min:UInt8} AND {steps_max:UInt8} AND (${inGroup.sql})
ORDER BY person
LIMIT {rows:UInt64}`,
    params: {
      ...{ ...attempts.params, ...inGroup.params },
      ...{ steps_min: stepsMin, steps_max: stepsMax, rows: page.limit + 1 },
    },
  };
}

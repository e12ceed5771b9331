import { z } from 'zod';
import { EVENT_COLUMNS } from '../../records/events/event-columns.ts';
import { propertyNumber } from '../../records/filters/property-value.ts';
import type { BoundParameters } from '../../store/sql.ts';
import { PROPERTIES, propertyOfPath } from '../property-parameter.ts';

/** Distinct counts up to this are exact, also where memory does not allow for exact ones of any size. */
export const EXACT_DISTINCT_MAX = 100_000;

/** Quantiles by their names. Between two values they are interpolated, as `PERCENTILE.INC` of spreadsheets is. */
const QUANTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;

const DISTINCT = { users: 'userId', organizations: 'groupId' } as const;

/** Measures of a numeric property. */
const NUMERIC = ['sum', 'avg', 'min', 'max', 'p50', 'p90', 'p95', 'p99'] as const;

/** What a series shows of its events. */
export type Measure =
  | { readonly kind: 'count' | keyof typeof DISTINCT }
  | { readonly kind: (typeof NUMERIC)[number]; readonly property: string };

const MEASURES = ['count', ...Object.keys(DISTINCT), ...NUMERIC.map((kind) => `${kind}:${PROPERTIES}<name>`)].join(
  ', ',
);

/** `count`, `users`, `organizations`, or a numeric measure with its property: `sum:properties.amount`. */
export const measureParameter = z
  .string()
  .transform((text, context): Measure => {
    if (text === 'count' || text === 'users' || text === 'organizations') return { kind: text };
    const kind = NUMERIC.find((one) => text.startsWith(`${one}:`));
    const message = `must be one of ${MEASURES}`;
    if (kind) return { kind, property: propertyOfPath(text.slice(kind.length + 1), context, message) };
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .meta({
    default: 'count',
    examples: ['count', 'users', 'sum:properties.amount'],
    description: `One of ${MEASURES}. \`users\` and \`organizations\` count those that are distinct and not null. Values that are not JSON numbers are left out; numbers are 64-bit floats. Quantiles are interpolated between two values.`,
  });

/** Returns a measure as a request names it. */
export function nameOfMeasure(measure: Measure): string {
  return 'property' in measure ? `${measure.kind}:${PROPERTIES}${measure.property}` : measure.kind;
}

/** A measure in SQL. States of parts are merged, so that no total is a sum of numbers that do not add up. */
export interface MeasureSql {
  /** Aggregates events into a state. */
  readonly state: string;
  /** Aggregates states, in the column `state`, into the number of all their events. */
  readonly merged: string;
}

/**
 * Returns the SQL of a measure.
 *
 * @param approximate whether distinct counts above {@link EXACT_DISTINCT_MAX} may be estimates, which takes less memory
 */
export function measureSql(measure: Measure, parameters: BoundParameters, approximate: boolean): MeasureSql {
  if (measure.kind === 'count') return { state: 'count()', merged: 'sum(state)' };
  if (!('property' in measure)) return distinctSql(EVENT_COLUMNS[DISTINCT[measure.kind]].column, approximate);
  const { kind, property } = measure;
  const number = propertyNumber(EVENT_COLUMNS.properties.column, property, parameters);
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

/** Hashes of 64 bits take the memory of a number. Among a million, two are the same once in 37 million times. */
function distinctSql(column: string, approximate: boolean): MeasureSql {
  const hashed = `sipHash64(${column}), ${column} != ''`;
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

/** Whether a measure counts things: only then can its numbers be estimates. */
export function isDistinct({ kind }: Measure): boolean {
  return kind in DISTINCT;
}

/** Whether groups are ordered by the measure. Those that do not grow with the group are ordered by their events. */
export function ranksGroups(measure: Measure): boolean {
  return !('property' in measure) || measure.kind === 'sum';
}

/** What a measure is where there are no events. */
export function emptyValue(measure: Measure): 0 | null {
  return ranksGroups(measure) ? 0 : null;
}

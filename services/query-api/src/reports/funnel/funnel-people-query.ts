import { textOfJson } from '../../records/filters/property-value.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import type { GroupKey } from '../group-key.ts';
import type { FunnelPeopleRequest } from './funnel-people-parameters.ts';
import { attemptsQuery, KEY_OF_ATTEMPT, MS_BEFORE_1970, personColumn } from './funnel-query.ts';

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
  const attempts = attemptsQuery(tables, funnel, hidden, [after]);
  const inGroup: Sql = funnel.groupBy ? groupCondition(funnel.groupBy, request.group) : { sql: 'true', params: {} };
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

/** The condition that an attempt is in a group, whose value is what the report shows: `keyValue` of its key. */
function groupCondition(groupBy: GroupKey, value: unknown): Sql {
  if (value === null) return { sql: `${KEY_OF_ATTEMPT} = ''`, params: {} };
  if (typeof value !== 'string') {
    // ClickHouse writes large numbers without the plus.
    return {
      sql: `${KEY_OF_ATTEMPT} = {key:String}`,
      params: { key: JSON.stringify(value).replace(/^(-?[\d.]+e)\+/, '$1') },
    };
  }
  const params = { key: value.toWellFormed() };
  if ('field' in groupBy) return { sql: `${KEY_OF_ATTEMPT} = {key:String}`, params };
  return { sql: `startsWith(${KEY_OF_ATTEMPT}, '"') AND ${textOfJson(KEY_OF_ATTEMPT)} = {key:String}`, params };
}

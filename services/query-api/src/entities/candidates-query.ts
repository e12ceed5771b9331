import { type Sql, tables } from '../clickhouse/sql.ts';
import { type CandidateConditions, candidateConditions } from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { EntityKind } from './entity-kinds.ts';

// Candidates: entities of which some stored row matches a filter. The row may be out of date, or hidden by a deletion.
// False positives are fine, since every candidate is checked; false negatives are not.

/** Returns the query for the first `count` candidates of positive filters after an identifier; reads every row. */
export function scanQuery(kind: EntityKind, filters: readonly PropertyFilter[], after: string, count: number): Sql {
  const conditions = filters.map(candidateConditions);
  // The index is asked for a single filter only: it finds the rows of one of several filters, however common it is.
  const source = conditions.length === 1 ? rowsWith(conditions[0]?.indexed) : rowsWith();
  return matchingAll(source, conditions, { kind, after, count });
}

/** Returns the same query, of the first `rowsMax` rows alone and without the index. */
export function sampleQuery(
  kind: EntityKind,
  filters: readonly PropertyFilter[],
  after: string,
  { count, rowsMax }: { readonly count: number; readonly rowsMax: number },
): Sql {
  const sample = `${rowsWith()}\n  ORDER BY id\n  LIMIT {sample_rows:UInt64}`;
  return matchingAll(sample, filters.map(candidateConditions), { kind, after, count, sample_rows: rowsMax });
}

/** Returns the query for the first `count` entities after an identifier that the index finds for a positive filter. */
export function indexQuery(kind: EntityKind, filter: PropertyFilter, after: string, count: number): Sql {
  const { indexed, params } = candidateConditions(filter, 0);
  return {
    sql: `SELECT id FROM (${rowsWith(indexed)}) GROUP BY id ORDER BY id LIMIT {count:UInt64}`,
    params: { ...params, kind, after, count },
  };
}

/** Returns the query for the identifier that `count` others lie before, after `after`; no row when there are fewer. */
export function windowEndQuery(kind: EntityKind, after: string, count: number): Sql {
  return {
    sql: `SELECT id
FROM ${tables.entities}
WHERE kind = {kind:String} AND id > {after:String}
ORDER BY id
LIMIT 1 OFFSET {count:UInt64}`,
    params: { kind, after, count },
  };
}

function rowsWith(condition = '1'): string {
  return `
  SELECT workspace_id, kind, id, property, register
  FROM ${tables.entityProperties}
  WHERE kind = {kind:String} AND id > {after:String} AND ${condition}`;
}

/** Entities of which each condition holds for some row. */
function matchingAll(source: string, conditions: readonly CandidateConditions[], params: Sql['params']): Sql {
  const exact = conditions.map((condition) => condition.exact);
  return {
    sql: `SELECT id
FROM (${source}
)
WHERE ${exact.join('\n  OR ')}
GROUP BY id
HAVING ${exact.map((sql) => `max(${sql})`).join('\n  AND ')}
ORDER BY id
LIMIT {count:UInt64}`,
    params: Object.assign({}, ...conditions.map((condition) => condition.params), params),
  };
}

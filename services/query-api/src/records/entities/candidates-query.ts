import {
  deletedUsers,
  type HidingStatement,
  type QuerySettings,
  type Sql,
  type Statement,
  type Tables,
} from '../../store/store.ts';
import {
  type CandidateConditions,
  candidateConditions,
  type EntityCondition,
  entityCondition,
} from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { type MemberFilters, memberFilterCondition } from '../owners/segment-sql.ts';
import { currentProperties } from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Direction } from './entity-order.ts';

// Candidates: entities of which some stored row matches a filter. The row may be out of date, or hidden by a deletion.
// False positives are fine, since every candidate is checked; false negatives are not.

/** Where a list by identifier goes on. */
export interface IdStart {
  readonly direction: Direction;
  /** The identifier that was listed last; `undefined` at the start of the list. */
  readonly after: string | undefined;
}

/** A query for identifiers, with settings of its own. */
export type CandidatesQuery = (Statement | HidingStatement) & { readonly settings: QuerySettings };

/** ClickHouse ends a query earlier that needs few rows when it processes few at a time, in one thread. */
export const FEW_ROWS: QuerySettings = { max_block_size: '512', max_threads: '1' };

/** For queries that read every row, or every row of a property. */
const MANY_ROWS: QuerySettings = { max_block_size: '8192' };

/**
 * Returns the query for the first `count` candidates of one positive filter after an identifier. It reads what the index
 * finds: the rows of the value, or those of the property where no index knows the value.
 */
export function findQuery(kind: EntityKind, filter: PropertyFilter, start: IdStart, count: number): CandidatesQuery {
  const { indexed, findsValue, exact, params } = candidateConditions(filter, 0);
  const condition = findsValue ? indexed : `${indexed} AND ${exact}`;
  return {
    statement: (tables) => inOrder(tables, condition, start, { ...params, kind, count }),
    settings: findsValue ? FEW_ROWS : MANY_ROWS,
  };
}

/** Returns the query for the first `count` entities after an identifier that the index finds for a positive filter. */
export function indexQuery(kind: EntityKind, filter: PropertyFilter, start: IdStart, count: number): CandidatesQuery {
  const { indexed, params } = candidateConditions(filter, 0);
  return {
    statement: (tables) => inOrder(tables, indexed, start, { ...params, kind, count }),
    settings: FEW_ROWS,
  };
}

/** Returns the query for the first `count` candidates of all positive filters after an identifier; reads every row. */
export function scanQuery(
  kind: EntityKind,
  filters: readonly PropertyFilter[],
  start: IdStart,
  count: number,
): CandidatesQuery {
  return {
    statement: (tables) =>
      matchingAll(
        rowsFrom(tables, start),
        filters.map((filter, index) => candidateConditions(filter, index)),
        start,
        { kind, count },
      ),
    settings: MANY_ROWS,
  };
}

/** Returns the same query for the first `rowsMax` rows. */
export function sampleQuery(
  kind: EntityKind,
  filters: readonly PropertyFilter[],
  start: IdStart,
  { count, rowsMax }: { readonly count: number; readonly rowsMax: number },
): CandidatesQuery {
  const params = { kind, count, sample_rows: rowsMax };
  return {
    statement: (tables) => {
      const sample = `${rowsFrom(tables, start)}\n  ORDER BY id ${start.direction}\n  LIMIT {sample_rows:UInt64}`;
      return matchingAll(sample, filters.map(sampleConditions), start, params);
    },
    settings: FEW_ROWS,
  };
}

/**
 * Returns the query for the first `count` entities after an identifier.
 *
 * @param members what they have to match. Default: nothing
 */
export function nextQuery(
  kind: EntityKind,
  start: IdStart,
  count: number,
  members: MemberFilters | undefined,
): CandidatesQuery {
  return {
    hiding: (tables, hidden) => {
      const condition = members && memberFilterCondition({ tables, hidden }, kind, members);
      return {
        sql: `SELECT DISTINCT id
FROM ${tables.entities}
WHERE kind = {kind:String} AND ${isAfter(start)}${condition ? ` AND (${condition.sql})` : ''}
ORDER BY id ${start.direction}
LIMIT {count:UInt64}`,
        params: { ...condition?.params, kind, ...afterParams(start), count },
      };
    },
    settings: members ? {} : FEW_ROWS,
  };
}

/** Returns the query for the identifier that `count` others lie before, after `after`; no row when there are fewer. */
export function windowEndQuery(kind: EntityKind, start: IdStart, count: number): CandidatesQuery {
  return {
    statement: (tables) => ({
      sql: `SELECT id
FROM ${tables.entities}
WHERE kind = {kind:String} AND ${isAfter(start)}
ORDER BY id ${start.direction}
LIMIT 1 OFFSET {count:UInt64}`,
      params: { kind, ...afterParams(start), count },
    }),
    settings: FEW_ROWS,
  };
}

/** Consecutive identifiers: those after `after`, up to and with `until`, or all of them. */
export interface Window extends IdStart {
  readonly until: string | undefined;
}

/** Returns the query for the first `count` candidates of any filters in a window. It reads all of the window. */
export function windowQuery(
  kind: EntityKind,
  filters: readonly PropertyFilter[],
  window: Window,
  count: number,
): CandidatesQuery {
  const { until, direction } = window;
  const isBefore = direction === 'ASC' ? '<=' : '>=';
  const within = (column: string) =>
    until === undefined
      ? isAfter(window, column)
      : `${isAfter(window, column)} AND ${column} ${isBefore} {until:String}`;
  const conditions = filters.map(entityCondition);
  return {
    statement: (tables) => ({
      sql: `SELECT DISTINCT id
FROM ${tables.entities}
WHERE kind = {kind:String} AND ${within('id')}
  AND ${conditions.map((condition) => mayMatch(tables, condition, within)).join('\n  AND ')}
ORDER BY id ${direction}
LIMIT {count:UInt64}`,
      params: {
        ...Object.assign({}, ...conditions.map(({ params }) => params)),
        ...{ kind, ...afterParams(window), count },
        ...(until !== undefined && { until }),
      },
    }),
    settings: MANY_ROWS,
  };
}

function mayMatch(
  tables: Tables,
  { properties, matches, negated }: EntityCondition,
  within: (column: string) => string,
): string {
  const condition = `${within('id')} AND ${properties}`;
  // Which row counts depends on the last deletion, so each of them makes a candidate.
  const rows = `SELECT id, property, tupleElement(register, 'value') AS value
    FROM ${tables.entityProperties} WHERE kind = {kind:String} AND ${condition}`;
  const found = `(
    SELECT id
    FROM (${negated ? currentProperties(tables, condition) : rows})
    WHERE ${matches}
  )`;
  if (!negated) return `id GLOBAL IN ${found}`;
  // What a user had before the deletion does not count, so who was ever deleted may match all the same.
  return `(id GLOBAL NOT IN ${found}
  OR id GLOBAL IN (${deletedUsers(tables, within('user_id'))}))`;
}

/** The condition that an identifier comes after those that were listed. */
function isAfter({ direction, after }: IdStart, column = 'id'): string {
  if (after === undefined) return `${column} > ''`;
  return `${column} ${direction === 'ASC' ? '>' : '<'} {after:String}`;
}

function afterParams({ after }: IdStart): Sql['params'] {
  return after === undefined ? {} : { after };
}

function rowsFrom(tables: Tables, start: IdStart): string {
  return `
  SELECT workspace_id, kind, id, property, register
  FROM ${tables.entityProperties}
  WHERE kind = {kind:String} AND ${isAfter(start)}`;
}

/** Reads in the order of the sorting key, and no further than the last candidate: DISTINCT does, GROUP BY does not. */
function inOrder(tables: Tables, condition: string, start: IdStart, params: Sql['params']): Sql {
  return {
    sql: `SELECT DISTINCT id
FROM ${tables.entityProperties}
WHERE kind = {kind:String} AND ${isAfter(start)} AND ${condition}
ORDER BY id ${start.direction}
LIMIT {count:UInt64}`,
    params: { ...params, ...afterParams(start) },
  };
}

/** The same conditions; to compare tokens is cheaper than to parse JSON, and costs less to plan. */
function sampleConditions(filter: PropertyFilter, index: number): CandidateConditions {
  const conditions = candidateConditions(filter, index);
  return conditions.findsValue ? { ...conditions, exact: conditions.indexed } : conditions;
}

/** Entities of which each condition holds for some row. */
function matchingAll(
  source: string,
  conditions: readonly CandidateConditions[],
  start: IdStart,
  params: Sql['params'],
): Sql {
  const exact = conditions.map((condition) => condition.exact);
  const having = exact.length === 1 ? '' : `HAVING ${exact.map((sql) => `max(${sql})`).join('\n  AND ')}\n`;
  return {
    sql: `SELECT id
FROM (${source}
)
WHERE ${exact.join('\n  OR ')}
GROUP BY id
${having}ORDER BY id ${start.direction}
LIMIT {count:UInt64}`,
    params: Object.assign({}, ...conditions.map((condition) => condition.params), params, afterParams(start)),
  };
}

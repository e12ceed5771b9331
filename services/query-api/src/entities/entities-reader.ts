import type { QueryContext, QueryRunner, Row } from '../clickhouse/query-runner.ts';
import type { QuerySettings } from '../clickhouse/query-settings.ts';
import type { Sql } from '../clickhouse/sql.ts';
import { entityCondition } from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { QueryKind } from '../metrics.ts';
import { type EntitiesSelection, entitiesQuery, propertiesQuery, timesSinceDeletionQuery } from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Entity } from './entity-record.ts';
import type { EntityScope } from './entity-scope.ts';
import { entityScopes, type FindCandidates, groupsOf } from './entity-scopes.ts';

interface Identity {
  readonly id: string;
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
  /** When the last change was accepted. */
  readonly changedMs: number;
}

interface SeenTimes {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** What a page of users or organizations holds. */
export interface EntitiesPage {
  readonly kind: EntityKind;
  /** The identifier after which the page begins; empty for the first page. */
  readonly after: string;
  readonly properties: readonly PropertyFilter[];
  readonly rowsMax: number;
}

/** Runs the queries of one request. */
export type RunQuery = (kind: QueryKind, sql: Sql, settings?: QuerySettings) => Promise<readonly Row[]>;

/** Returns a function that runs the queries of one request. All of them together may take `timeoutMs`. */
export function withinTime(queryRunner: Pick<QueryRunner, 'all'>, context: QueryContext, timeoutMs: number): RunQuery {
  const endsAt = performance.now() + timeoutMs;
  // A query gets a moment even when the time is up, and then fails as every query does that takes too long.
  const leftMs = () => Math.max(1, Math.floor(endsAt - performance.now()));
  return async (kind, sql, settings = {}) =>
    await queryRunner.all({ kind, timeoutMs: leftMs(), settings, ...context, ...sql });
}

/** Reads the users or organizations of a page, in the order of their identifiers. */
export async function* readPage(run: RunQuery, page: EntitiesPage): AsyncGenerator<Entity, void, undefined> {
  const { kind, after, properties, rowsMax } = page;
  const find: FindCandidates = async ({ settings, ...sql }) => await run('entity_candidates', sql, settings);
  let left = rowsMax;
  for await (const scope of entityScopes({ kind, after, filters: properties, rowsMax }, find)) {
    const entities = 'ids' in scope ? readCandidates(run, page, scope.ids) : readRange(run, page, scope, left);
    for await (const entity of entities) {
      yield entity;
      left -= 1;
      if (left === 0) return;
    }
  }
}

/** Returns one user or organization; `undefined` if there is none of this identifier. */
export async function readEntity(run: RunQuery, kind: EntityKind, id: string): Promise<Entity | undefined> {
  const { value } = await readCandidates(run, { kind, properties: [] }, [id]).next();
  return value ?? undefined;
}

type Filtered = Pick<EntitiesPage, 'kind' | 'properties'>;

/** Reads those of some entities that exist and match. All that is known about them is queried at once. */
async function* readCandidates(
  run: RunQuery,
  { kind, properties }: Filtered,
  ids: readonly string[],
): AsyncGenerator<Entity, void, undefined> {
  const identities = readIdentities(run, kind, { scope: { ids }, properties: [], rowsMax: ids.length });
  yield* await readDetails(run, { kind, properties }, ids, identities);
}

/** Reads those entities of a range that exist and match, as many as the page has room for. */
async function* readRange(
  run: RunQuery,
  { kind, properties }: Filtered,
  scope: EntityScope,
  rowsMax: number,
): AsyncGenerator<Entity, void, undefined> {
  const identities = await readIdentities(run, kind, { scope, properties, rowsMax });
  for (const group of groupsOf(identities, ({ id }) => id)) {
    const ids = group.map(({ id }) => id);
    yield* await readDetails(run, { kind, properties: [] }, ids, Promise.resolve(group));
  }
}

async function readIdentities(
  run: RunQuery,
  kind: EntityKind,
  selection: EntitiesSelection,
): Promise<readonly Identity[]> {
  const rows = await run('entities_page', entitiesQuery(kind, selection));
  return (rows as [string, number, number, number][]).map(([id, firstSeenMs, lastSeenMs, version]) => ({
    ...{ id, firstSeenMs, lastSeenMs },
    changedMs: Math.floor(version / 1_000),
  }));
}

/** Returns the entities of `identities` whose properties pass the filters; `ids` has the identifiers of all of them. */
async function readDetails(
  run: RunQuery,
  { kind, properties }: Filtered,
  ids: readonly string[],
  identities: Promise<readonly Identity[]>,
): Promise<readonly Entity[]> {
  const conditions = properties.map(entityCondition);
  const [found, times, rows] = await Promise.all([
    identities,
    kind === 'user' ? timesSinceDeletion(run, ids) : new Map<string, SeenTimes>(),
    run('entity_properties', propertiesQuery(kind, ids, conditions)),
  ]);
  const byId = Map.groupBy(rows as PropertyRow[], ([id]) => id);
  return found
    .map(({ changedMs, ...identity }) => {
      const since = times.get(identity.id);
      // Until an event or a sighting since the deletion is stored, the time of the last change stands in for it.
      const seen = since && { firstSeenMs: since.firstMs || changedMs, lastSeenMs: since.lastMs || changedMs };
      return { ...identity, ...seen, rows: byId.get(identity.id) ?? [] };
    })
    .filter(({ rows }) => conditions.every(({ negated }, index) => rows.some((row) => row[3][index]) !== negated))
    .map(({ rows, ...entity }) => ({ ...entity, properties: rows.map(([, name, json]) => [name, json] as const) }));
}

/** `matches` has an item for each condition: whether the property matches it. */
type PropertyRow = [id: string, name: string, json: string, matches: readonly (0 | 1)[]];

/** When users that were deleted and exist again have been seen since. */
async function timesSinceDeletion(run: RunQuery, ids: readonly string[]): Promise<Map<string, SeenTimes>> {
  const rows = await run('entity_times', timesSinceDeletionQuery(ids));
  return new Map((rows as [string, number, number][]).map(([id, firstMs, lastMs]) => [id, { firstMs, lastMs }]));
}

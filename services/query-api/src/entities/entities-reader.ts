import type { QueryContext, QueryRunner, Row } from '../clickhouse/query-runner.ts';
import type { Sql } from '../clickhouse/sql.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { QueryKind } from '../metrics.ts';
import { type EntitiesSelection, entitiesQuery, propertiesQuery, timesSinceDeletionQuery } from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Entity } from './entity-record.ts';
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
export type RunQuery = (kind: QueryKind, sql: Sql, blockRowsMax?: number) => Promise<readonly Row[]>;

/** Returns a function that runs the queries of one request. All of them together may take `timeoutMs`. */
export function withinTime(queryRunner: Pick<QueryRunner, 'all'>, context: QueryContext, timeoutMs: number): RunQuery {
  const endsAt = performance.now() + timeoutMs;
  // A query gets a moment even when the time is up, and then fails as every query does that takes too long.
  const leftMs = () => Math.max(1, Math.floor(endsAt - performance.now()));
  return async (kind, sql, blockRowsMax) =>
    await queryRunner.all({ kind, timeoutMs: leftMs(), ...(blockRowsMax && { blockRowsMax }), ...context, ...sql });
}

/** Reads the users or organizations of a page, in the order of their identifiers. */
export async function* readPage(run: RunQuery, page: EntitiesPage): AsyncGenerator<Entity, void, undefined> {
  const { kind, after, properties, rowsMax } = page;
  const find: FindCandidates = async (sql, blockRowsMax) => await run('entity_candidates', sql, blockRowsMax);
  let left = rowsMax;
  for await (const scope of entityScopes({ kind, after, filters: properties, rowsMax }, find)) {
    for await (const entity of readScope(run, kind, { scope, properties, rowsMax: left })) {
      yield entity;
      left -= 1;
    }
    if (left === 0) return;
  }
}

/** Returns one user or organization; `undefined` if there is none of this identifier. */
export async function readEntity(run: RunQuery, kind: EntityKind, id: string): Promise<Entity | undefined> {
  const selection = { scope: { ids: [id] }, properties: [], rowsMax: 1 };
  const { value } = await readScope(run, kind, selection).next();
  return value ?? undefined;
}

/** Reads the users or organizations of a selection that exist, in the order of their identifiers. */
async function* readScope(
  run: RunQuery,
  kind: EntityKind,
  selection: EntitiesSelection,
): AsyncGenerator<Entity, void, undefined> {
  const rows = await run('entities_page', entitiesQuery(kind, selection));
  const identities = (rows as [string, number, number, number][]).map(
    ([id, firstSeenMs, lastSeenMs, version]): Identity => ({
      ...{ id, firstSeenMs, lastSeenMs },
      changedMs: Math.floor(version / 1_000),
    }),
  );
  for (const group of groupsOf(identities, ({ id }) => id)) {
    const ids = group.map(({ id }) => id);
    const [times, properties] = await Promise.all([
      kind === 'user' ? timesSinceDeletion(run, ids) : new Map<string, SeenTimes>(),
      currentProperties(run, kind, ids),
    ]);
    for (const { changedMs, ...identity } of group) {
      const since = times.get(identity.id);
      // Until an event or a sighting since the deletion is stored, the time of the last change stands in for it.
      const seen = since && { firstSeenMs: since.firstMs || changedMs, lastSeenMs: since.lastMs || changedMs };
      yield { ...identity, ...seen, properties: properties.get(identity.id) ?? [] };
    }
  }
}

/** When users that were deleted and exist again have been seen since. */
async function timesSinceDeletion(run: RunQuery, ids: readonly string[]): Promise<Map<string, SeenTimes>> {
  const rows = await run('entity_times', timesSinceDeletionQuery(ids));
  return new Map((rows as [string, number, number][]).map(([id, firstMs, lastMs]) => [id, { firstMs, lastMs }]));
}

async function currentProperties(
  run: RunQuery,
  kind: EntityKind,
  ids: readonly string[],
): Promise<Map<string, [string, string][]>> {
  const rows = await run('entity_properties', propertiesQuery(kind, ids));
  const byId = Map.groupBy(rows as [string, string, string][], ([id]) => id);
  return new Map([...byId].map(([id, found]) => [id, found.map(([, name, json]) => [name, json])]));
}

import type { QueryContext, QueryRunner } from '../clickhouse/query-runner.ts';
import type { QuerySettings } from '../clickhouse/query-settings.ts';
import type { Row } from '../clickhouse/row-parser.ts';
import type { Sql } from '../clickhouse/sql.ts';
import { type EntityCondition, entityCondition } from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { QueryKind } from '../metrics.ts';
import { entityCandidates, type FindCandidates } from './candidates.ts';
import type { IdStart } from './candidates-query.ts';
import { deletionsQuery, identitiesQuery, propertiesQuery, timesSinceDeletionQuery } from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Entity, SeenEntity } from './entity-record.ts';

/** How an entity is stored. Times in milliseconds, versions in microseconds. */
type IdentityRow = [id: string, firstSeenMs: number, lastSeenMs: number, version: number];

/** `matches` has an item for each condition: whether the property matches it. */
type PropertyRow = [id: string, name: string, json: string, version: number, matches: readonly (0 | 1)[]];

type TimesRow = [id: string, firstSeenMs: number, lastSeenMs: number];

/** What a page of users or organizations, ordered by identifier, holds. */
export interface EntitiesPage extends IdStart {
  readonly kind: EntityKind;
  readonly properties: readonly PropertyFilter[];
  readonly rowsMax: number;
}

/** A user or an organization, with the times that are stored of it: those before a deletion may be among them. */
export interface StoredEntity extends Entity {
  readonly stored: SeenEntity;
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
export async function* readPage(run: RunQuery, page: EntitiesPage): AsyncGenerator<StoredEntity, void, undefined> {
  const { kind, direction, after, properties, rowsMax } = page;
  const find: FindCandidates = async ({ settings, ...sql }) => await run('entity_candidates', sql, settings);
  let left = rowsMax;
  for await (const ids of entityCandidates({ kind, direction, after, filters: properties, rowsMax }, find)) {
    const entities = await readEntities(run, { kind, properties }, ids);
    for (const entity of direction === 'ASC' ? entities : entities.toReversed()) {
      yield entity;
      left -= 1;
      if (left === 0) return;
    }
  }
}

/** Returns one user or organization; `undefined` if there is none of this identifier. */
export async function readEntity(run: RunQuery, kind: EntityKind, id: string): Promise<Entity | undefined> {
  const [entity] = await readEntities(run, { kind, properties: [] }, [id]);
  return entity;
}

/** Returns whether there is a user or an organization of this identifier. */
export async function entityExists(run: RunQuery, kind: EntityKind, id: string): Promise<boolean> {
  return (await readIdentities(run, kind, [id])).identities.length > 0;
}

/** Returns when a user or an organization was seen; `undefined` if there is none of this identifier. */
export async function readEntityTimes(run: RunQuery, kind: EntityKind, id: string): Promise<SeenEntity | undefined> {
  const { identities, deletedVersions } = await readIdentities(run, kind, [id]);
  const [seen] = await currentTimes(run, identities, deletedVersions);
  return seen;
}

/** Returns the version of the last deletion of those users that were ever deleted, in microseconds. */
export async function deletedVersionsOf(run: RunQuery, users: readonly string[]): Promise<ReadonlyMap<string, number>> {
  return new Map((await run('entity_deletions', deletionsQuery(users))) as [string, number][]);
}

const NO_DELETIONS: ReadonlyMap<string, number> = new Map();

/** Returns those of some entities that exist, and the deletions of those that came back. */
async function readIdentities(run: RunQuery, kind: EntityKind, ids: readonly string[]) {
  const [rows, deletedVersions] = await Promise.all([
    run('entities_page', identitiesQuery(kind, ids)),
    // Organizations are not deleted; one may have the identifier of a deleted user.
    kind === 'user' ? deletedVersionsOf(run, ids) : NO_DELETIONS,
  ]);
  const isCurrent = (id: string, version: number) => version > (deletedVersions.get(id) ?? 0);
  const identities = (rows as IdentityRow[]).filter(([id, , , version]) => isCurrent(id, version));
  return { identities, deletedVersions, isCurrent };
}

/** Returns those of some entities that exist and match, in the order of their identifiers. */
export async function readEntities(
  run: RunQuery,
  { kind, properties }: Pick<EntitiesPage, 'kind' | 'properties'>,
  ids: readonly string[],
): Promise<readonly StoredEntity[]> {
  const conditions = properties.map(entityCondition);
  const [{ identities, deletedVersions, isCurrent }, rows] = await Promise.all([
    readIdentities(run, kind, ids),
    run('entity_properties', propertiesQuery(kind, ids, conditions)),
  ]);
  const byId = Map.groupBy(
    (rows as PropertyRow[]).filter(([id, , , version]) => isCurrent(id, version)),
    ([id]) => id,
  );
  const found = identities.filter(([id]) => {
    const current = byId.get(id) ?? [];
    const matches = ({ negated }: EntityCondition, index: number) => current.some((row) => row[4][index]) !== negated;
    return conditions.every(matches);
  });
  const stored = new Map(found.map(([id, firstSeenMs, lastSeenMs]) => [id, { id, firstSeenMs, lastSeenMs }]));
  return (await currentTimes(run, found, deletedVersions)).map((seen) => ({
    ...seen,
    stored: stored.get(seen.id) ?? seen,
    properties: (byId.get(seen.id) ?? []).map(([, name, json]) => [name, json] as const),
  }));
}

/** Returns when some entities that exist were seen: those that came back, since their deletion. */
async function currentTimes(
  run: RunQuery,
  identities: readonly IdentityRow[],
  deletedVersions: ReadonlyMap<string, number>,
): Promise<readonly SeenEntity[]> {
  const returned = identities.map(([id]) => id).filter((id) => deletedVersions.has(id));
  const times = returned.length > 0 ? await run('entity_times', timesSinceDeletionQuery(returned)) : [];
  const since = new Map((times as TimesRow[]).map(([id, ...seen]) => [id, seen]));
  return identities.map(([id, firstSeenMs, lastSeenMs, version]) => {
    // Until an event or a sighting since the deletion is stored, the time of the last change stands in for it.
    const changedMs = Math.floor(version / 1_000);
    const [firstMs, lastMs] = since.get(id)?.map((seenMs) => seenMs || changedMs) ?? [];
    return { id, firstSeenMs: firstMs ?? firstSeenMs, lastSeenMs: lastMs ?? lastSeenMs };
  });
}

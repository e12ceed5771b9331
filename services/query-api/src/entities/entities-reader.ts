import type { Reservation } from '@sluice/shared/http/memory-budget';
import type { HidingStatement, QueryContext } from '../clickhouse/query.ts';
import type { QueryRunner } from '../clickhouse/query-runner.ts';
import type { QuerySettings } from '../clickhouse/query-settings.ts';
import type { Row } from '../clickhouse/row-parser.ts';
import type { Sql } from '../clickhouse/sql.ts';
import type { TimeBudget } from '../clickhouse/time-budget.ts';
import { type EntityCondition, entityCondition } from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { QueryKind } from '../metrics.ts';
import { entityCandidates, type FindCandidates, groupsOf } from './candidates.ts';
import type { IdStart } from './candidates-query.ts';
import {
  deletionsQuery,
  identitiesQuery,
  type PropertyValues,
  propertiesByKeyQuery,
  propertiesQuery,
  timesSinceDeletionQuery,
} from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Entity, Property, SeenEntity } from './entity-record.ts';
import { inPieces, type Piece, type PieceOptions } from './pieces.ts';

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

interface SmallEntity extends StoredEntity {
  readonly properties: readonly (readonly Property[])[];
}

/** Runs the queries of one request. */
export interface RunQuery {
  (kind: QueryKind, statement: Sql | HidingStatement, options?: RunOptions): Promise<readonly Row[]>;
  /** What the request holds. */
  readonly memory?: Reservation | undefined;
}

interface RunOptions {
  readonly settings?: QuerySettings;
  /** Where the memory of the rows is reserved. Default: that of the request, until its end. */
  readonly memory?: Reservation | undefined;
}

/** Returns a function that runs the queries of one request within their time. */
export function withinTime(queryRunner: Pick<QueryRunner, 'all'>, context: QueryContext, budget: TimeBudget): RunQuery {
  const { memory } = context;
  const run = async (kind: QueryKind, statement: Sql | HidingStatement, options: RunOptions = {}) =>
    await queryRunner.all({ kind, budget, ...context, ...options, ...statement });
  return Object.assign(run, { memory });
}

/** Reads the users or organizations of a page, in the order of their identifiers. */
export async function* readPage(run: RunQuery, page: EntitiesPage): AsyncGenerator<StoredEntity, void, undefined> {
  const { kind, direction, after, properties, rowsMax } = page;
  let left = rowsMax;
  for await (const ids of entityCandidates({ kind, direction, after, filters: properties, rowsMax }, finding(run))) {
    for await (const { found } of readEntities(
      run,
      { kind, properties },
      ids.map((id) => ({ id })),
    )) {
      for (const entity of direction === 'ASC' ? found : found.toReversed()) {
        yield entity;
        left -= 1;
        if (left === 0) return;
      }
    }
  }
}

/** Returns what finds candidates. With each query it releases the candidates of those that have ended before. */
function finding(run: RunQuery): FindCandidates {
  const found: (Reservation | undefined)[] = [];
  return async ({ settings, ...sql }) => {
    for (const memory of found.splice(0)) memory?.release();
    const memory = run.memory?.part();
    const rows = await run('entity_candidates', sql, { settings, memory });
    found.push(memory);
    return rows;
  };
}

/** Returns one user or organization; `undefined` if there is none of this identifier. */
export async function readEntity(run: RunQuery, kind: EntityKind, id: string): Promise<Entity | undefined> {
  for await (const { found } of readEntities(run, { kind, properties: [] }, [{ id }])) return found[0];
  return undefined;
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

async function deletedVersionsOf(run: RunQuery, users: readonly string[]): Promise<ReadonlyMap<string, number>> {
  return new Map((await run('entity_deletions', deletionsQuery(users))) as [string, number][]);
}

const NO_DELETIONS: ReadonlyMap<string, number> = new Map();

/**
 * How old deletions may be, in milliseconds. Queries beside them may wait for slots, and a deletion is in force within a
 * second.
 */
export const DELETIONS_FRESH_MS = 500;

/**
 * Reads something, and at the same time the versions of the last deletions of those users that were ever deleted, in
 * microseconds; these again if the rest took long.
 */
export async function withDeletions<Found>(
  run: RunQuery,
  users: readonly string[],
  read: () => Promise<Found>,
): Promise<readonly [Found, ReadonlyMap<string, number>]> {
  if (users.length === 0) return [await read(), NO_DELETIONS];
  const startedAt = performance.now();
  const [found, deletedVersions] = await Promise.all([read(), deletedVersionsOf(run, users)]);
  const isFresh = performance.now() - startedAt <= DELETIONS_FRESH_MS;
  return [found, isFresh ? deletedVersions : await deletedVersionsOf(run, users)];
}

/** Organizations are not deleted; one may have the identifier of a deleted user. */
function usersAmong(kind: EntityKind, ids: readonly string[]): readonly string[] {
  return kind === 'user' ? ids : [];
}

/** Returns those of some entities that exist, and the deletions of those that came back. */
async function readIdentities(run: RunQuery, kind: EntityKind, ids: readonly string[]) {
  const read = () => run('entities_page', identitiesQuery(kind, ids));
  return currentOf(...(await withDeletions(run, usersAmong(kind, ids), read)));
}

function currentOf(rows: readonly Row[], deletedVersions: ReadonlyMap<string, number>) {
  const isCurrent = (id: string, version: number) => version > (deletedVersions.get(id) ?? 0);
  const identities = (rows as IdentityRow[]).filter(([id, , , version]) => isCurrent(id, version));
  return { identities, deletedVersions, isCurrent };
}

/**
 * Reads those of some entities that exist and match, in pieces. Each piece has some of the items, in their order, and what
 * was found of them, in the order of identifiers.
 */
export function readEntities<Item extends { readonly id: string }>(
  run: RunQuery,
  kindAndProperties: Pick<EntitiesPage, 'kind' | 'properties'>,
  items: readonly Item[],
): AsyncGenerator<Piece<Item, readonly StoredEntity[]>, void, undefined> {
  const { kind } = kindAndProperties;
  return inPieces<Item, readonly StoredEntity[]>(items, run.memory, {
    readSome(some, options) {
      const ids = [...new Set(some.map(({ id }) => id))];
      return readPiece(run, kindAndProperties, { ids, values: 'value', options });
    },
    async readAlone({ id }, options) {
      const found = await readPiece(run, kindAndProperties, { ids: [id], values: 'key', options });
      return found.map((entity) => {
        return { ...entity, properties: propertiesByKey(run, kind, id, entity.properties.flat()) };
      });
    },
  });
}

/** Reads the properties of a large entity when they are wanted. The values of `found` are their keys. */
async function* propertiesByKey(
  run: RunQuery,
  kind: EntityKind,
  id: string,
  found: readonly Property[],
): AsyncGenerator<readonly Property[], void, undefined> {
  const readSome = (keys: readonly string[], options: PieceOptions) =>
    run('entity_properties', propertiesByKeyQuery(kind, id, keys), options);
  for (const keys of groupsOf(found.map(([, key]) => key))) {
    const pieces = inPieces(keys, run.memory, {
      readSome,
      readAlone: (key, options) => readSome([key], options),
    });
    for await (const piece of pieces) yield piece.found as readonly (readonly [name: string, json: string])[];
  }
}

interface PieceRequest {
  readonly ids: readonly string[];
  readonly values: PropertyValues;
  readonly options: PieceOptions;
}

async function readPiece(
  run: RunQuery,
  { kind, properties }: Pick<EntitiesPage, 'kind' | 'properties'>,
  { ids, values, options }: PieceRequest,
): Promise<readonly SmallEntity[]> {
  const conditions = properties.map(entityCondition);
  const read = () =>
    Promise.all([
      run('entities_page', identitiesQuery(kind, ids), { memory: options.memory }),
      run('entity_properties', propertiesQuery(kind, ids, conditions, values), options),
    ]);
  const [[stored, rows], deletions] = await withDeletions(run, usersAmong(kind, ids), read);
  const { identities, deletedVersions, isCurrent } = currentOf(stored, deletions);
  const byId = Map.groupBy(
    (rows as PropertyRow[]).filter(([id, , , version]) => isCurrent(id, version)),
    ([id]) => id,
  );
  const found = identities.filter(([id]) => {
    const current = byId.get(id) ?? [];
    const matches = ({ negated }: EntityCondition, index: number) => current.some((row) => row[4][index]) !== negated;
    return conditions.every(matches);
  });
  const seen = new Map(found.map(([id, firstSeenMs, lastSeenMs]) => [id, { id, firstSeenMs, lastSeenMs }]));
  return (await currentTimes(run, found, deletedVersions)).map((current) => ({
    ...current,
    stored: seen.get(current.id) ?? current,
    properties: [(byId.get(current.id) ?? []).map(([, name, json]) => [name, json] as const)],
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

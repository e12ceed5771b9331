import type { Reservation } from '@sluice/shared/http/memory-budget';
import {
  type LastDeletions,
  type RequestQueries,
  type Row,
  returnedUsersRowsQuery,
  timesSinceDeletionQuery,
  withDeletions,
} from '../../store/store.ts';
import { type EntityCondition, entityCondition } from '../filters/entity-condition.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { SegmentFilter } from '../owners/segment.ts';
import { entityCandidates, groupsOf } from './candidates.ts';
import type { CandidatesQuery, IdStart } from './candidates-query.ts';
import { identitiesQuery, type PropertyValues, propertiesByKeyQuery, propertiesQuery } from './entities-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Entity, Property, SeenEntity } from './entity-record.ts';
import { inPieces, type Piece, type PieceOptions } from './pieces.ts';

/** How an entity is stored. Times in milliseconds, versions in microseconds. */
type IdentityRow = [id: string, firstSeenMs: number, lastSeenMs: number, version: number];

/** `matches` has an item for each condition: whether the property matches it. */
type PropertyRow = [id: string, name: string, json: string, version: number, matches: readonly (0 | 1)[]];

/** What a page of users or organizations, ordered by identifier, holds. */
export interface EntitiesPage extends IdStart {
  readonly kind: EntityKind;
  readonly segments: readonly SegmentFilter[];
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

/** Reads the users or organizations of a page, in the order of their identifiers. */
export async function* readPage(
  queries: RequestQueries,
  page: EntitiesPage,
): AsyncGenerator<StoredEntity, void, undefined> {
  const { kind, direction, after, segments, properties, rowsMax } = page;
  const finder = new CandidateFinder(queries);
  const request = { kind, direction, after, segments, filters: properties, rowsMax };
  let left = rowsMax;
  for await (const ids of entityCandidates(request, (query) => finder.find(query))) {
    const items = ids.map((id) => ({ id }));
    for await (const { found } of readEntities(queries, { kind, properties }, items)) {
      for (const entity of direction === 'ASC' ? found : found.toReversed()) {
        yield entity;
        left -= 1;
        if (left === 0) return;
      }
    }
  }
}

/** Returns one user or organization; `undefined` if there is none of this identifier. */
export async function readEntity(queries: RequestQueries, kind: EntityKind, id: string): Promise<Entity | undefined> {
  for await (const { found } of readEntities(queries, { kind, properties: [] }, [{ id }])) return found[0];
  return undefined;
}

/** Returns whether there is a user or an organization of this identifier. */
export async function entityExists(queries: RequestQueries, kind: EntityKind, id: string): Promise<boolean> {
  return (await readIdentities(queries, kind, [id])).identities.length > 0;
}

/** Returns when a user or an organization was seen; `undefined` if there is none of this identifier. */
export async function readEntityTimes(
  queries: RequestQueries,
  kind: EntityKind,
  id: string,
): Promise<SeenEntity | undefined> {
  const { identities, deletions } = await readIdentities(queries, kind, [id]);
  const [seen] = await currentTimes(queries, identities, deletions);
  return seen;
}

/** Organizations are not deleted; one may have the identifier of a deleted user. */
export function usersAmong(kind: EntityKind, ids: readonly string[]): readonly string[] {
  return kind === 'user' ? ids : [];
}

/** Returns how those of some users or organizations are stored that exist, and the last deletions of them. */
export async function readIdentities(queries: RequestQueries, kind: EntityKind, ids: readonly string[]) {
  const read = () => queries.all('entities_page', (tables) => identitiesQuery(tables, kind, ids));
  const [rows, deletions] = await withDeletions(queries, usersAmong(kind, ids), read);
  return { identities: currentOf(rows, deletions), deletions };
}

function currentOf(rows: readonly Row[], deletions: LastDeletions): readonly IdentityRow[] {
  return (rows as IdentityRow[]).filter(([id, , , version]) => !deletions.hide(id, version));
}

/**
 * Reads those of some entities that exist and match, in pieces. Each piece has some of the items, in their order, and what
 * was found of them, in the order of identifiers.
 */
export function readEntities<Item extends { readonly id: string }>(
  queries: RequestQueries,
  kindAndProperties: Pick<EntitiesPage, 'kind' | 'properties'>,
  items: readonly Item[],
): AsyncGenerator<Piece<Item, readonly StoredEntity[]>, void, undefined> {
  const { kind } = kindAndProperties;
  return inPieces<Item, readonly StoredEntity[]>(items, queries.memory, {
    readSome(some, options) {
      const ids = [...new Set(some.map(({ id }) => id))];
      return readPiece(queries, kindAndProperties, { ids, values: 'value', options });
    },
    async readAlone({ id }, options) {
      const found = await readPiece(queries, kindAndProperties, { ids: [id], values: 'key', options });
      return found.map((entity) => {
        return { ...entity, properties: propertiesByKey(queries, kind, id, entity.properties.flat()) };
      });
    },
  });
}

/** Reads the properties of a large entity when they are wanted. The values of `found` are their keys. */
async function* propertiesByKey(
  queries: RequestQueries,
  kind: EntityKind,
  id: string,
  found: readonly Property[],
): AsyncGenerator<readonly Property[], void, undefined> {
  const readSome = (keys: readonly string[], options: PieceOptions) =>
    queries.all('entity_properties', (tables) => propertiesByKeyQuery(tables, kind, id, keys), options);
  for (const keys of groupsOf(found.map(([, key]) => key))) {
    const pieces = inPieces(keys, queries.memory, {
      readSome,
      readAlone: (key, options) => readSome([key], options),
    });
    for await (const piece of pieces) yield piece.found as unknown as readonly Property[];
  }
}

interface PieceRequest {
  readonly ids: readonly string[];
  readonly values: PropertyValues;
  readonly options: PieceOptions;
}

async function readPiece(
  queries: RequestQueries,
  { kind, properties }: Pick<EntitiesPage, 'kind' | 'properties'>,
  { ids, values, options }: PieceRequest,
): Promise<readonly SmallEntity[]> {
  const conditions = properties.map(entityCondition);
  const read = () =>
    Promise.all([
      queries.all('entities_page', (tables) => identitiesQuery(tables, kind, ids), { memory: options.memory }),
      queries.all('entity_properties', (tables) => propertiesQuery(tables, kind, ids, conditions, values), options),
    ]);
  const [[stored, rows], deletions] = await withDeletions(queries, usersAmong(kind, ids), read);
  const byId = Map.groupBy(
    (rows as PropertyRow[]).filter(([id, , , version]) => !deletions.hide(id, version)),
    ([id]) => id,
  );
  const found = currentOf(stored, deletions).filter(([id]) => {
    const current = byId.get(id) ?? [];
    const matches = ({ negated }: EntityCondition, index: number) => current.some((row) => row[4][index]) !== negated;
    return conditions.every(matches);
  });
  const seen = new Map(found.map(([id, firstSeenMs, lastSeenMs]) => [id, { id, firstSeenMs, lastSeenMs }]));
  return (await currentTimes(queries, found, deletions)).map((current) => ({
    ...current,
    stored: seen.get(current.id) ?? current,
    properties: [(byId.get(current.id) ?? []).map(([, name, json, version]) => [name, json, version] as const)],
  }));
}

/** Returns when some entities that exist were seen: users who came back, since their deletion. */
async function currentTimes(
  queries: RequestQueries,
  identities: readonly IdentityRow[],
  deletions: LastDeletions,
): Promise<readonly SeenEntity[]> {
  const returned = identities.map(([id]) => id).filter((id) => deletions.has(id));
  const since = await timesSinceDeletion(queries, returned, deletions);
  return identities.map(([id, firstSeenMs, lastSeenMs]) => since.get(id) ?? { id, firstSeenMs, lastSeenMs });
}

/** Finds candidates for one page. With each query it releases those of the queries that have ended before. */
class CandidateFinder {
  readonly #queries: RequestQueries;
  readonly #found: (Reservation | undefined)[] = [];

  constructor(queries: RequestQueries) {
    this.#queries = queries;
  }

  async find({ settings, ...query }: CandidatesQuery): Promise<readonly Row[]> {
    for (const memory of this.#found.splice(0)) memory?.release();
    const memory = this.#queries.memory?.part();
    const rows = await this.#queries.all('entity_candidates', query, { settings, memory });
    this.#found.push(memory);
    return rows;
  }
}

/** How a user is stored. Times in milliseconds, versions in microseconds. `begin`: the deletion after which the row begins. */
type UserRow = [id: string, firstSeenMs: number, lastSeenMs: number, version: number, begin: number];

type TimesRow = [id: string, firstSeenMs: number, lastSeenMs: number];

/** Returns when users who came back after a deletion were seen since then. */
export async function timesSinceDeletion(
  queries: RequestQueries,
  ids: readonly string[],
  deletions: LastDeletions,
): Promise<ReadonlyMap<string, SeenEntity>> {
  if (ids.length === 0) return new Map();
  const rows = (await queries.all('entity_times', (tables) => returnedUsersRowsQuery(tables, ids))) as UserRow[];
  const current = rows.filter(([id, , , version]) => !deletions.hide(id, version));
  const mayPrecede = ([id, , , , begin]: UserRow) => deletions.precede(id, begin);
  const mixed = current.filter(mayPrecede);
  const computed = await computeTimes(queries, mixed);
  const sure = current.filter((row) => !mayPrecede(row));
  const byId = Map.groupBy([...sure, ...computed], ([id]) => id);
  return new Map([...byId].map(([id, all]) => [id, seenIn(id, all)]));
}

/** Computes the times of users of whom a row may hold some from before the deletion. */
async function computeTimes(queries: RequestQueries, mixed: readonly UserRow[]): Promise<readonly TimesRow[]> {
  if (mixed.length === 0) return [];
  const ids = [...new Set(mixed.map(([id]) => id))];
  const found = (await queries.all('entity_times', (tables) => timesSinceDeletionQuery(tables, ids))) as TimesRow[];
  const times = new Map(found.map(([id, ...seen]) => [id, seen]));
  return [...Map.groupBy(mixed, ([id]) => id)].map(([id, rows]) => {
    // Until an event or a sighting since the deletion is stored, the time of the last change stands in for it.
    const changedMs = Math.floor(Math.max(...rows.map(([, , , version]) => version)) / 1_000);
    const [firstMs, lastMs] = times.get(id) ?? [0, 0];
    return [id, firstMs || changedMs, lastMs || changedMs];
  });
}

function seenIn(id: string, rows: readonly (UserRow | TimesRow)[]): SeenEntity {
  const firstSeenMs = Math.min(...rows.map(([, firstMs]) => firstMs));
  return { id, firstSeenMs, lastSeenMs: Math.max(...rows.map(([, , lastMs]) => lastMs)) };
}

import type { Row } from '../clickhouse/row-parser.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { groupsOf, idsOf } from './candidates.ts';
import { FEW_ROWS } from './candidates-query.ts';
import { type RunQuery, readEntities, readPage, type StoredEntity } from './entities-reader.ts';
import type { EntityKind } from './entity-kinds.ts';
import { comparePositions, type EntityPosition, type SeenOrder, seenPositionOf } from './entity-order.ts';
import type { Entity } from './entity-record.ts';
import { nextSeenQuery, RETURNED } from './seen-query.ts';

// Pages of users or organizations ordered by when they were seen.
//
// Candidates come in the order of a projection of `entities`. Rows that are not merged yet give several candidates for
// one user; each is checked, and only the one with the user's own time counts.
//
// A user who came back after a deletion is listed with the times since then. Until the erasure, the stored times are
// those from before. Such users are few: all of them are read, and put where they belong.

/** Rows of one query at most, unless the page is longer. */
const ROWS_MAX = 1_000;

/** So many candidates for each record of a page show that filters match rarely. */
const CANDIDATES_PER_RECORD = 20;

/** So many matches of filters are read and sorted, instead of looking for them in the order of the list. */
const MATCHES_MAX = 1_000;

/** What a page that is ordered by a time holds. */
export interface SeenPage {
  readonly kind: EntityKind;
  readonly order: SeenOrder;
  readonly after: EntityPosition | undefined;
  readonly properties: readonly PropertyFilter[];
  readonly rowsMax: number;
  /** Whether deletions of users are pending. */
  readonly hasPendingDeletions: boolean;
}

/** A user or an organization, and where it stands. */
export interface ListedEntity {
  readonly entity: Entity;
  readonly position: EntityPosition;
}

/** Reads the users or organizations of a page, in its order. */
export async function* readSeenPage(run: RunQuery, page: SeenPage): AsyncGenerator<ListedEntity, void, undefined> {
  const { order, rowsMax } = page;
  const returned = await readReturned(run, page);
  const apart = new Set(returned.map(({ entity }) => entity.id));
  const waiting = afterPosition(returned, page.after, order);
  let left = rowsMax;
  for await (const listed of readStored(run, page, apart)) {
    while (waiting[0] && comparePositions(waiting[0].position, listed.position, order) < 0) {
      yield waiting.shift() as ListedEntity;
      left -= 1;
      if (left === 0) return;
    }
    yield listed;
    left -= 1;
    if (left === 0) return;
  }
  yield* waiting.slice(0, left);
}

/** Those of some users or organizations that come after a position, in their order. */
function afterPosition(
  found: readonly ListedEntity[],
  after: EntityPosition | undefined,
  order: SeenOrder,
): ListedEntity[] {
  return found
    .filter(({ position }) => !after || comparePositions(position, after, order) > 0)
    .sort((one, other) => comparePositions(one.position, other.position, order));
}

/** Reads the users who came back after a pending deletion, and match. */
async function readReturned(
  run: RunQuery,
  { kind, order, properties, hasPendingDeletions }: SeenPage,
): Promise<readonly ListedEntity[]> {
  if (kind !== 'user' || !hasPendingDeletions) return [];
  const found: ListedEntity[] = [];
  for (const ids of groupsOf(idsOf(await run('entity_candidates', RETURNED)))) {
    for (const entity of await readEntities(run, { kind, properties }, ids)) {
      found.push({ entity, position: seenPositionOf(entity, order) });
    }
  }
  return found;
}

/** Reads those that stand where their stored times say; `apart` are the others. */
async function* readStored(
  run: RunQuery,
  page: SeenPage,
  apart: ReadonlySet<string>,
): AsyncGenerator<ListedEntity, void, undefined> {
  const { kind, order, properties, rowsMax } = page;
  let { after } = page;
  let checked = 0;
  let isSorted = properties.length === 0;
  for (let count = rowsMax; ; count = Math.max(rowsMax, Math.min(4 * count, ROWS_MAX))) {
    const rows = await run('entity_candidates', nextSeenQuery(kind, order, after, count), FEW_ROWS);
    const candidates = candidatesOf(rows);
    yield* matchesAmong(run, page, candidates, apart);
    if (rows.length < count) return;
    after = candidates.at(-1);
    checked += candidates.length;
    if (isSorted || checked < CANDIDATES_PER_RECORD * rowsMax) continue;
    isSorted = true;
    const matches = await fewMatches(run, page, apart);
    if (matches) {
      yield* afterPosition(matches, after, order);
      return;
    }
  }
}

/** The positions of rows. Equal rows, which are not merged yet, are one. */
function candidatesOf(rows: readonly Row[]): readonly EntityPosition[] {
  const positions = (rows as [string, number][]).map(([id, seenMs]) => ({ id, seenMs }));
  return positions.filter(({ id, seenMs }, index) => {
    const last = positions[index - 1];
    return last?.id !== id || last.seenMs !== seenMs;
  });
}

/** Reads those of some candidates that match and stand where the candidate says. */
async function* matchesAmong(
  run: RunQuery,
  { kind, order, properties }: SeenPage,
  candidates: readonly EntityPosition[],
  apart: ReadonlySet<string>,
): AsyncGenerator<ListedEntity, void, undefined> {
  let first = 0;
  for (const ids of groupsOf(candidates.map(({ id }) => id))) {
    const group = candidates.slice(first, first + ids.length);
    first += ids.length;
    const found = await readEntities(run, { kind, properties }, [...new Set(ids)]);
    const entities = new Map(found.map((entity) => [entity.id, entity]));
    for (const position of group) {
      const entity = entities.get(position.id);
      if (!entity || apart.has(entity.id)) continue;
      if (seenPositionOf(entity.stored, order).seenMs === position.seenMs) yield { entity, position };
    }
  }
}

/** Reads all that match, in any order; `undefined` if they are too many. */
async function fewMatches(
  run: RunQuery,
  { kind, order, properties }: SeenPage,
  apart: ReadonlySet<string>,
): Promise<readonly ListedEntity[] | undefined> {
  const found: StoredEntity[] = [];
  const page = { kind, direction: 'ASC', after: undefined, properties, rowsMax: MATCHES_MAX + 1 } as const;
  for await (const entity of readPage(run, page)) found.push(entity);
  if (found.length > MATCHES_MAX) return undefined;
  return found
    .filter(({ id }) => !apart.has(id))
    .map((entity) => ({ entity, position: seenPositionOf(entity.stored, order) }));
}

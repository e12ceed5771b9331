import { type RequestQueries, type Row, returnedUsersQuery, type Sql, type Tables } from '../../store/store.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { OwnerSource } from '../owners/owners.ts';
import type { SegmentFilter } from '../owners/segment.ts';
import { memberFilterCondition } from '../owners/segment-sql.ts';
import { groupsOf, idsOf } from './candidates.ts';
import { FEW_ROWS } from './candidates-query.ts';
import { readEntities, readPage, type StoredEntity } from './entities-reader.ts';
import type { EntityKind } from './entity-kinds.ts';
import { compareSortKeys, type EntitySortKey, type SeenOrder, seenSortKeyOf } from './entity-order.ts';
import type { Entity } from './entity-record.ts';

// Pages of users or organizations ordered by when they were seen.
//
// Candidates come in the order of a projection of `entities`. Rows that are not merged yet give several candidates for
// one user; each is checked, and only the one with the user's own time counts.
//
// A user who came back after a deletion is listed with the times since then. Until the erasure, rows from before are stored
// as well. Such users are few: all of them are read, and put where they belong. Afterwards they are listed as all others.

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
  readonly after: EntitySortKey | undefined;
  readonly segments: readonly SegmentFilter[];
  readonly properties: readonly PropertyFilter[];
  readonly rowsMax: number;
}

/** A user or an organization, and where it stands. */
export interface ListedEntity {
  readonly entity: Entity;
  readonly sortKey: EntitySortKey;
}

/** Reads the users or organizations of a page, in its order. */
export async function* readSeenPage(
  queries: RequestQueries,
  page: SeenPage,
): AsyncGenerator<ListedEntity, void, undefined> {
  const { order, rowsMax } = page;
  const { candidates, hasPendingDeletions } = await firstCandidates(queries, page);
  const returned = hasPendingDeletions ? await findReturned(queries, page) : [];
  const apart = new Set(returned.map(({ id }) => id));
  const waiting = readAt(queries, page, afterSortKey(returned, page.after, order).slice(0, rowsMax));
  let next = await waiting.next();
  let left = rowsMax;
  for await (const listed of readStored(queries, page, { first: candidates, apart })) {
    while (!next.done && compareSortKeys(next.value.sortKey, listed.sortKey, order) < 0) {
      yield next.value;
      left -= 1;
      if (left === 0) return;
      next = await waiting.next();
    }
    yield listed;
    left -= 1;
    if (left === 0) return;
  }
  for (; !next.done && left > 0; left -= 1) {
    yield next.value;
    next = await waiting.next();
  }
}

/** Returns those of some sort keys that come after another, in their order. */
function afterSortKey(
  sortKeys: readonly EntitySortKey[],
  after: EntitySortKey | undefined,
  order: SeenOrder,
): readonly EntitySortKey[] {
  return sortKeys
    .filter((sortKey) => !after || compareSortKeys(sortKey, after, order) > 0)
    .toSorted((one, other) => compareSortKeys(one, other, order));
}

/** Reads the first candidates, and whether there may be users who came back: that is decided when the query has its slot. */
async function firstCandidates(queries: RequestQueries, page: SeenPage) {
  let hasPendingDeletions = false;
  const { hiding, settings } = nextQuery(page, page.after, page.rowsMax);
  const noting = (tables: Tables, hidden: Sql | undefined) => {
    hasPendingDeletions = page.kind === 'user' && hidden !== undefined;
    return hiding(tables, hidden);
  };
  const candidates = await queries.all('entity_candidates', { hiding: noting }, { settings });
  return { candidates, hasPendingDeletions };
}

/** Returns the query for the next `count` rows of a page: of all, or of those that match its filters where it has segments. */
function nextQuery(page: SeenPage, after: EntitySortKey | undefined, count: number) {
  const members = membersOf(page);
  return {
    hiding: (tables: Tables, hidden: Sql | undefined) =>
      nextSeenQuery(tables, page, after, count, members?.({ tables, hidden })),
    settings: members ? {} : FEW_ROWS,
  };
}

/** Returns what writes the condition of a page with segments; undefined of one without. */
function membersOf({ kind, segments, properties }: SeenPage): ((source: OwnerSource) => Sql) | undefined {
  if (segments.length === 0) return undefined;
  return (source) => memberFilterCondition(source, kind, { segments, properties });
}

/** Finds the users who came back after a pending deletion, and match. */
async function findReturned(queries: RequestQueries, page: SeenPage): Promise<readonly EntitySortKey[]> {
  const { kind, order, properties } = page;
  const sortKeys: EntitySortKey[] = [];
  const hiding = (tables: Tables, hidden: Sql | undefined): Sql => {
    const returned = returnedUsersQuery(tables);
    const members = membersOf(page)?.({ tables, hidden });
    if (!members) return returned;
    return {
      sql: `SELECT id FROM (${returned.sql}) WHERE ${members.sql}`,
      params: { ...returned.params, ...members.params },
    };
  };
  for (const ids of groupsOf(idsOf(await queries.all('entity_candidates', { hiding })))) {
    const items = ids.map((id) => ({ id }));
    for await (const { found } of readEntities(queries, { kind, properties }, items)) {
      sortKeys.push(...found.map((entity) => seenSortKeyOf(entity, order)));
    }
  }
  return sortKeys;
}

/** Reads the entities at some sort keys; one may stand at several. */
async function* readAt(
  queries: RequestQueries,
  { kind, properties }: SeenPage,
  sortKeys: readonly EntitySortKey[],
): AsyncGenerator<ListedEntity & { readonly entity: StoredEntity }, void, undefined> {
  let first = 0;
  for (const ids of groupsOf(sortKeys.map(({ id }) => id))) {
    const group = sortKeys.slice(first, first + ids.length);
    first += ids.length;
    for await (const { items, found } of readEntities(queries, { kind, properties }, group)) {
      const entities = new Map(found.map((entity) => [entity.id, entity]));
      for (const sortKey of items) {
        const entity = entities.get(sortKey.id);
        if (entity) yield { entity, sortKey };
      }
    }
  }
}

/** Reads those that stand where their stored times say; `first` are the first candidates, `apart` the others. */
async function* readStored(
  queries: RequestQueries,
  page: SeenPage,
  { first, apart }: { readonly first: readonly Row[]; readonly apart: ReadonlySet<string> },
): AsyncGenerator<ListedEntity, void, undefined> {
  const { order, segments, properties, rowsMax } = page;
  let { after } = page;
  let checked = 0;
  let isSorted = segments.length > 0 || properties.length === 0;
  for (let count = rowsMax; ; count = Math.max(rowsMax, Math.min(4 * count, ROWS_MAX))) {
    const memory = queries.memory?.part();
    const isFirst = checked === 0 && after === page.after;
    const { hiding, settings } = nextQuery(page, after, count);
    const rows = isFirst ? first : await queries.all('entity_candidates', { hiding }, { settings, memory });
    const candidates = candidatesOf(rows);
    yield* matchesAmong(queries, page, candidates, apart);
    if (rows.length < count) return;
    after = candidates.at(-1);
    memory?.release();
    checked += candidates.length;
    if (isSorted || checked < CANDIDATES_PER_RECORD * rowsMax) continue;
    isSorted = true;
    const matches = await fewMatches(queries, page);
    if (matches) {
      yield* matchesAmong(queries, page, afterSortKey(matches, after, order), apart);
      return;
    }
  }
}

/** The sort keys of rows. Equal rows, which are not merged yet, are one. */
function candidatesOf(rows: readonly Row[]): readonly EntitySortKey[] {
  const sortKeys = (rows as [string, number][]).map(([id, seenMs]) => ({ id, seenMs }));
  return sortKeys.filter(({ id, seenMs }, index) => {
    const last = sortKeys[index - 1];
    return last?.id !== id || last.seenMs !== seenMs;
  });
}

/** Reads those of some candidates that match and stand where the candidate says. */
async function* matchesAmong(
  queries: RequestQueries,
  page: SeenPage,
  candidates: readonly EntitySortKey[],
  apart: ReadonlySet<string>,
): AsyncGenerator<ListedEntity, void, undefined> {
  const { order } = page;
  const rest = candidates.filter(({ id }) => !apart.has(id));
  for await (const { entity, sortKey } of readAt(queries, page, rest)) {
    if (seenSortKeyOf(entity.stored, order).seenMs === sortKey.seenMs) yield { entity, sortKey };
  }
}

/** Finds all that match, in any order; `undefined` if they are too many. */
async function fewMatches(
  queries: RequestQueries,
  { kind, order, properties }: SeenPage,
): Promise<readonly EntitySortKey[] | undefined> {
  const sortKeys: EntitySortKey[] = [];
  const page = {
    kind,
    direction: 'ASC',
    after: undefined,
    segments: [],
    properties,
    rowsMax: MATCHES_MAX + 1,
  } as const;
  for await (const { stored } of readPage(queries, page)) sortKeys.push(seenSortKeyOf(stored, order));
  return sortKeys.length > MATCHES_MAX ? undefined : sortKeys;
}

const COLUMNS = {
  firstSeenAt: 'first_seen_at',
  lastSeenAt: 'last_seen_at',
} as const satisfies Record<SeenOrder['field'], string>;

/**
 * Returns the query for the next `count` rows of an order: identifier and time in milliseconds. ClickHouse reads them in
 * the order of a projection of `entities`. Rows of one user that are not merged yet have different times: at most one of
 * them is that of the user.
 *
 * @param members the condition that they have to match. Default: there is none
 */
export function nextSeenQuery(
  tables: Tables,
  { kind, order: { field, direction } }: Pick<SeenPage, 'kind' | 'order'>,
  after: EntitySortKey | undefined,
  count: number,
  members?: Sql,
): Sql {
  const column = COLUMNS[field];
  const compare = direction === 'ASC' ? '>' : '<';
  const afterTime = 'fromUnixTimestamp64Milli({after_seen:Int64})';
  // The first comparison adds nothing, but it finds the place in the projection.
  const isAfter = `${column} ${compare}= ${afterTime}
  AND (${column} ${compare} ${afterTime} OR id ${compare} {after:String})`;
  return {
    sql: `SELECT id, toUnixTimestamp64Milli(${column})
FROM ${tables.entities}
WHERE kind = {kind:String}${after ? ` AND ${isAfter}` : ''}${members ? ` AND (${members.sql})` : ''}
ORDER BY ${column} ${direction}, id ${direction}
LIMIT {count:UInt64}`,
    params: { ...members?.params, kind, count, ...(after && { after: after.id, after_seen: after.seenMs }) },
  };
}

import type { Row } from '../../store/store.ts';
import { type PropertyFilter, toPositive } from '../filters/property-filter.ts';
import type { SegmentFilter } from '../owners/segment.ts';
import {
  type CandidatesQuery,
  findQuery,
  type IdStart,
  indexQuery,
  nextQuery,
  sampleQuery,
  scanQuery,
  windowEndQuery,
  windowQuery,
} from './candidates-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { Direction } from './entity-order.ts';

/**
 * How many bytes of identifiers one query may name: ClickHouse takes 128 KiB of a parameter, and escaping may quadruple
 * them.
 */
const IDENTIFIER_BYTES_MAX = 20 * 1_024;

/** Rows that are looked at first, for each entity of the page: enough for a value that one row in 32 has. */
const SAMPLE_ROWS_PER_ENTITY = 32;

/** Candidates of one query at most, unless the page is longer. */
const CANDIDATES_MAX = 1_000;

/** So many rounds with the rarest of several filters, before a scan for all of them. */
const INDEX_ROUNDS_MAX = 4;

/** So many queries for candidates that are no matches show that windows are cheaper. */
const SCANS_MAX = 8;

/** Entities of one window at most. */
const WINDOW_ENTITIES_MAX = 262_144;

/** Runs a query for candidates. */
type FindCandidates = (query: CandidatesQuery) => Promise<readonly Row[]>;

export interface CandidatesRequest extends IdStart {
  readonly kind: EntityKind;
  readonly segments: readonly SegmentFilter[];
  readonly filters: readonly PropertyFilter[];
  /** How many entities the page takes. */
  readonly rowsMax: number;
}

/**
 * Returns identifiers of entities that can match, in their order and in groups that fit into a query each. No entity
 * after `after` that matches is left out. The caller checks each of them, and stops when its page is full.
 *
 * Without filters they are all entities, and with segments those that match all filters. Otherwise:
 * 1. A sample of the first rows has enough candidates if the filters match often.
 * 2. Of several filters, the one whose value is rarest, as far as the index can tell, has few candidates.
 * 3. Rows that match are found by the index for a single filter, and by a scan for several.
 * 4. Windows of entities, each larger than the last, for everything else. If all filters are `ne` and `exists=false`,
 *    the first window is so small that each of its entities is a candidate.
 */
export async function* entityCandidates(
  request: CandidatesRequest,
  find: FindCandidates,
): AsyncGenerator<readonly string[], void, undefined> {
  let { after } = request;
  for await (const { ids, isLast } of steps(request, find)) {
    yield* groupsOf(ids);
    if (isLast) return;
    after = ids.at(-1) ?? after;
  }
  yield* windows({ ...request, after }, find);
}

interface Candidates {
  readonly ids: readonly string[];
  /** No other entity can match. */
  readonly isLast: boolean;
}

function steps(request: CandidatesRequest, find: FindCandidates): AsyncGenerator<Candidates, void, undefined> {
  const { segments, filters } = request;
  if (segments.length > 0 || filters.length === 0) return all(request, find);
  const positive = filters.map(toPositive).filter(({ negated }) => !negated);
  if (positive.length === 0) return firstOf({ ...request, rowsMax: 4 * request.rowsMax }, find);
  return positiveCandidates({ ...request, filters: positive.map(({ filter }) => filter) }, find);
}

/** All entities. */
async function* all(
  { kind, direction, segments, filters, rowsMax, ...request }: CandidatesRequest,
  find: FindCandidates,
): AsyncGenerator<Candidates, void, undefined> {
  const members = segments.length > 0 ? { segments, properties: filters } : undefined;
  for (let { after } = request; ; ) {
    const ids = idsOf(await find(nextQuery(kind, { direction, after }, rowsMax, members)));
    yield { ids, isLast: ids.length < rowsMax };
    after = ids.at(-1) ?? after;
  }
}

/** The first entities alone. */
async function* firstOf(request: CandidatesRequest, find: FindCandidates): AsyncGenerator<Candidates, void, undefined> {
  for await (const candidates of all(request, find)) {
    yield candidates;
    return;
  }
}

/** Candidates of positive filters, until some thousands of them have not filled the page. */
async function* positiveCandidates(
  { kind, direction, filters, rowsMax, ...request }: CandidatesRequest,
  find: FindCandidates,
): AsyncGenerator<Candidates, void, undefined> {
  let { after } = request;
  const start = () => ({ direction, after });
  const sample = { count: rowsMax, rowsMax: rowsMax * SAMPLE_ROWS_PER_ENTITY };
  const frequent = idsOf(await find(sampleQuery(kind, filters, start(), sample)));
  if (frequent.length === rowsMax) {
    yield { ids: frequent, isLast: false };
    after = frequent.at(-1) ?? after;
  }
  for (let asked = filters, round = 0; filters.length > 1 && round < INDEX_ROUNDS_MAX; round += 1) {
    const count = Math.max(rowsMax, Math.min(8 * rowsMax, CANDIDATES_MAX));
    const found = await Promise.all(
      asked.map(async (filter) => ({ filter, ids: idsOf(await find(indexQuery(kind, filter, start(), count))) })),
    );
    const { filter, ids } = found.reduce((best, one) => (isRarer(one.ids, best.ids, direction) ? one : best));
    yield { ids, isLast: ids.length < count };
    after = ids.at(-1) ?? after;
    // Later rounds go on with the rarest value.
    asked = [filter];
  }
  const [single, ...others] = filters;
  for (let scan = 0; scan < SCANS_MAX; scan += 1) {
    const count = Math.max(rowsMax, Math.min(4 ** scan * rowsMax, CANDIDATES_MAX));
    const isSingle = single && others.length === 0;
    const query = isSingle ? findQuery(kind, single, start(), count) : scanQuery(kind, filters, start(), count);
    const ids = idsOf(await find(query));
    yield { ids, isLast: ids.length < count };
    after = ids.at(-1) ?? after;
  }
}

/** Of two lists with the same limit, the shorter one ends the search; of two full ones, the one that reaches farther. */
function isRarer(ids: readonly string[], other: readonly string[], direction: Direction): boolean {
  if (ids.length !== other.length) return ids.length < other.length;
  const compared = Buffer.compare(Buffer.from(ids.at(-1) ?? ''), Buffer.from(other.at(-1) ?? ''));
  return direction === 'ASC' ? compared > 0 : compared < 0;
}

/** Candidates of one window after the other, up to the last entity. */
async function* windows(
  { kind, direction, filters, rowsMax, ...request }: CandidatesRequest,
  find: FindCandidates,
): AsyncGenerator<readonly string[], void, undefined> {
  let { after } = request;
  const start = () => ({ direction, after });
  for (let size = 16 * rowsMax; ; size = Math.min(8 * size, WINDOW_ENTITIES_MAX)) {
    const [until] = idsOf(await find(windowEndQuery(kind, start(), size)));
    const count = Math.max(rowsMax, Math.min(size / 16, CANDIDATES_MAX));
    for (let isWhole = false; !isWhole; ) {
      const ids = idsOf(await find(windowQuery(kind, filters, { ...start(), until }, count)));
      yield* groupsOf(ids);
      isWhole = ids.length < count;
      after = ids.at(-1) ?? after;
    }
    if (until === undefined) return;
    after = until;
  }
}

/** Returns the first column of a result. */
export function idsOf(rows: readonly Row[]): readonly string[] {
  return rows.map(([id]) => id as string);
}

/** Splits identifiers into groups that fit into one query. */
export function* groupsOf(ids: readonly string[]): Generator<readonly string[]> {
  let group: string[] = [];
  let bytes = 0;
  for (const id of ids) {
    const size = Buffer.byteLength(id);
    if (group.length > 0 && bytes + size > IDENTIFIER_BYTES_MAX) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(id);
    bytes += size;
  }
  if (group.length > 0) yield group;
}

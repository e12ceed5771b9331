import type { Row } from '../clickhouse/query-runner.ts';
import { type PropertyFilter, toPositive } from '../filters/property-filter.ts';
import {
  type CandidatesQuery,
  findQuery,
  indexQuery,
  sampleQuery,
  scanQuery,
  windowEndQuery,
} from './candidates-query.ts';
import type { EntityKind } from './entity-kinds.ts';
import type { EntityScope } from './entity-scope.ts';

/**
 * How many bytes of identifiers one query may name: ClickHouse takes 128 KiB of a parameter, and escaping may quadruple
 * them.
 */
const IDENTIFIER_BYTES_MAX = 20 * 1_024;

/** Rows that are looked at first, for each entity of the page: enough for a value that one row in 32 has. */
const SAMPLE_ROWS_PER_ENTITY = 32;

/** Candidates of one query at most, unless the page is longer. */
const CANDIDATES_MAX = 1_000;

/** So many queries for candidates that are no matches show that windows are cheaper. */
const SCANS_MAX = 8;

/** Entities of one window at most. */
const WINDOW_ENTITIES_MAX = 262_144;

/** Runs a query for candidates. */
export type FindCandidates = (query: CandidatesQuery) => Promise<readonly Row[]>;

export interface ScopesRequest {
  readonly kind: EntityKind;
  readonly after: string;
  readonly filters: readonly PropertyFilter[];
  /** How many entities the page takes. */
  readonly rowsMax: number;
}

/**
 * Returns scopes that hold every entity after `after` that can match, in the order of their identifiers; the caller
 * stops when its page is full. A scope may hold entities that do not match.
 *
 * 1. A sample of the first rows has enough candidates if the filters match often.
 * 2. The filter whose value is rarest, as far as an index can tell, has few candidates.
 * 3. Rows that match are found for a single filter by the index, for several by a scan.
 * 4. Windows of entities, each larger than the last, for everything else: no filter, or only `ne` and `exists=false`.
 */
export async function* entityScopes(
  request: ScopesRequest,
  find: FindCandidates,
): AsyncGenerator<EntityScope, void, undefined> {
  let { after } = request;
  const positive = request.filters.map(toPositive).filter(({ negated }) => !negated);
  if (positive.length > 0) {
    for await (const { ids, isLast } of candidates(
      { ...request, filters: positive.map(({ filter }) => filter) },
      find,
    )) {
      for (const group of groupsOf(ids, (id) => id)) yield { ids: group };
      if (isLast) return;
      after = ids.at(-1) ?? after;
    }
  }
  yield* windows(request, after, find);
}

interface Candidates {
  readonly ids: readonly string[];
  /** No other entity matches. */
  readonly isLast: boolean;
}

/** Candidates of positive filters, until some thousands of them have not filled the page. */
async function* candidates(
  { kind, filters, rowsMax, ...request }: ScopesRequest,
  find: FindCandidates,
): AsyncGenerator<Candidates, void, undefined> {
  let { after } = request;
  const sample = { count: rowsMax, rowsMax: rowsMax * SAMPLE_ROWS_PER_ENTITY };
  const frequent = idsOf(await find(sampleQuery(kind, filters, after, sample)));
  if (frequent.length === rowsMax) {
    yield { ids: frequent, isLast: false };
    after = frequent.at(-1) ?? after;
  }
  if (filters.length > 1) {
    const count = Math.max(rowsMax, Math.min(8 * rowsMax, CANDIDATES_MAX));
    const found = await Promise.all(
      filters.map(async (filter) => idsOf(await find(indexQuery(kind, filter, after, count)))),
    );
    const rarest = found.reduce((best, ids) => (isRarer(ids, best) ? ids : best));
    yield { ids: rarest, isLast: rarest.length < count };
    after = rarest.at(-1) ?? after;
  }
  for (let scan = 0; scan < SCANS_MAX; scan += 1) {
    const count = Math.max(rowsMax, Math.min(4 ** scan * rowsMax, CANDIDATES_MAX));
    const ids = idsOf(await findAll(count));
    yield { ids, isLast: ids.length < count };
    after = ids.at(-1) ?? after;
  }

  async function findAll(count: number): Promise<readonly Row[]> {
    const [filter] = filters;
    return filters.length === 1 && filter
      ? await find(findQuery(kind, filter, after, count))
      : await find(scanQuery(kind, filters, after, count));
  }
}

/** Of two lists with the same limit, the shorter one ends the search; of two full ones, the one that reaches farther. */
function isRarer(ids: readonly string[], other: readonly string[]): boolean {
  if (ids.length !== other.length) return ids.length < other.length;
  return Buffer.compare(Buffer.from(ids.at(-1) ?? ''), Buffer.from(other.at(-1) ?? '')) > 0;
}

/** Consecutive ranges of identifiers, up to the last one. */
async function* windows(
  { kind, rowsMax }: ScopesRequest,
  start: string,
  find: FindCandidates,
): AsyncGenerator<EntityScope, void, undefined> {
  let after = start;
  for (let count = 2 * rowsMax; ; count = Math.min(8 * count, WINDOW_ENTITIES_MAX)) {
    const [until] = idsOf(await find(windowEndQuery(kind, after, count)));
    yield { after, until };
    if (until === undefined) return;
    after = until;
  }
}

function idsOf(rows: readonly Row[]): readonly string[] {
  return rows.map(([id]) => id as string);
}

/** Splits a list into groups whose identifiers fit into one query. */
export function* groupsOf<Item>(
  items: readonly Item[],
  identifierOf: (item: Item) => string,
): Generator<readonly Item[]> {
  let group: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = Buffer.byteLength(identifierOf(item));
    if (group.length > 0 && bytes + size > IDENTIFIER_BYTES_MAX) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(item);
    bytes += size;
  }
  if (group.length > 0) yield group;
}

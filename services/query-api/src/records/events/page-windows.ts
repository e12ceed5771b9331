import { LRUCache } from 'lru-cache';
import { EVENT_FIELDS } from './event-columns.ts';
import type { PageRequest } from './events-parameters.ts';

/**
 * ClickHouse starts reading every part that a page may lie in. The time of the parts of 36 months is most of what a
 * page costs, although its rows nearly always lie in the newest ones. So a page by time is read in windows: from where
 * it begins, as far as it will probably reach, then the rest. The windows touch and do not overlap, so the page is
 * exact wherever they end.
 */

/** What is known of the list and of its whole workspace. */
export interface KnownDensities {
  readonly list: Density | undefined;
  readonly workspace: Density | undefined;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** A smaller window saves nothing: its parts are the same. */
const WIDTH_MS_MIN = 10 * MINUTE_MS;

/** A larger window saves nothing: it is nearly all there is. */
const WIDTH_MS_MAX = 366 * DAY_MS;

/** The width of a window when nothing is known. */
const WIDTH_MS_DEFAULT = DAY_MS;

/** How much wider a window is than the page should need. */
const SPARE = 2;

/** How much wider the second window is, and one whose filter may let few events through. */
const STEP = 32;

/** A value of these fields usually has few events, which an index finds. */
const SPARSE_FIELDS: ReadonlySet<string> = new Set(
  EVENT_FIELDS.filter(([, { type }]) => type === 'uuid' || type === 'identifier').map(([field]) => field),
);

/**
 * Returns where the windows of a page end, the nearest first, in milliseconds: the last timestamp that a window
 * includes. After the last one comes the rest. Empty means that the page is read at once.
 */
export function windowEnds(request: PageRequest, known: KnownDensities, nowMs: number): readonly number[] {
  const { order, after, startMs, endMs } = request;
  if (order.field !== 'timestamp') return [];
  const descending = order.direction === 'DESC';
  const begin = after?.timestampMs ?? beginning(request, known, nowMs);
  if (begin === undefined) return [];
  const rows = request.offset + request.limit + 1;
  const isLastOne = (end: number) => (descending ? end <= (startMs ?? 0) : end >= (endMs ?? Number.POSITIVE_INFINITY));
  return widths(request, known, rows)
    .filter((width) => width < WIDTH_MS_MAX)
    .map((width) => (descending ? begin - Math.ceil(width) : begin + Math.ceil(width)))
    .filter((end) => !isLastOne(end));
}

/** Where a first page probably begins. */
function beginning({ order, startMs, endMs }: PageRequest, known: KnownDensities, nowMs: number): number | undefined {
  if (order.direction === 'DESC') {
    return Math.min(endMs ?? Number.POSITIVE_INFINITY, known.list?.newestMs ?? known.workspace?.newestMs ?? nowMs);
  }
  const oldest = known.list?.oldestMs ?? known.workspace?.oldestMs;
  return startMs === undefined ? oldest : Math.max(startMs, oldest ?? 0);
}

function widths(request: PageRequest, { list, workspace }: KnownDensities, rows: number): readonly number[] {
  const fitting = (msPerEvent: number) => Math.max(WIDTH_MS_MIN, SPARE * rows * msPerEvent);
  if (list?.msPerEvent !== undefined) {
    const width = fitting(list.msPerEvent);
    return [width, STEP * width];
  }
  const ofWorkspace = workspace?.msPerEvent;
  const width = ofWorkspace === undefined ? WIDTH_MS_DEFAULT : fitting(ofWorkspace);
  if (isSparse(request)) return request.after ? [width] : [];
  return [STEP * width];
}

/** Whether few events probably match the filters. */
function isSparse({ fields, properties }: PageRequest): boolean {
  const isEquality = ({ condition }: { readonly condition: { readonly operator: string } }) =>
    condition.operator === 'eq' || condition.operator === 'in';
  // What many users have, such as a country, is read of those in a window alone.
  const isSparseProperty = (filter: PageRequest['properties'][number]) =>
    filter.document !== 'user.properties' && isEquality(filter);
  return (
    fields.some((filter) => SPARSE_FIELDS.has(filter.field) && isEquality(filter)) || properties.some(isSparseProperty)
  );
}

/** What earlier pages showed of a list: how its events lie in time. It is a hint, and never decides what a page holds. */
export interface Density {
  /** The time of the newest event, in milliseconds. */
  readonly newestMs?: number;
  /** The time of the oldest event, in milliseconds. */
  readonly oldestMs?: number;
  /** Milliseconds between two events, on average. `Infinity`: too few events to fill a page. */
  readonly msPerEvent?: number;
}

/** How many lists are remembered. Each takes some 300 bytes. */
const LISTS_MAX = 10_000;

/** Remembers the densities of the lists that were read last. */
export class PageDensities {
  readonly #densities = new LRUCache<string, Density>({ max: LISTS_MAX });

  /** Returns what is known of a list. */
  of(list: string): Density | undefined {
    return this.#densities.get(list);
  }

  /** Adds to what is known of a list. */
  learn(list: string, density: Density): void {
    this.#densities.set(list, { ...this.#densities.get(list), ...density });
  }
}

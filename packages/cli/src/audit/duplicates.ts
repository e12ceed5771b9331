import type { Books } from './books.ts';
import type { Database } from './database.ts';
import type { Selection } from './intake.ts';
import { findDeletions, findEvents } from './second-look.ts';

const DAY_MS = 86_400_000;

/** How many ranges of time are looked at: each costs a statement. */
const RANGES_MAX = 16;

/** How many keys that stand twice are looked at. */
const KEYS_MAX = 100_000;

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** An event that shows more than once. */
export interface Duplicate {
  readonly workspace: string;
  readonly uuid: string;
  readonly ms: number;
  /** When the newest of its rows was received, in microseconds. */
  readonly received: number;
  readonly rows: number;
}

export interface DuplicatesOptions extends Selection {
  readonly database: Database;
  /** The days of UTC since 1970 of the events that are looked at. */
  readonly days: ReadonlySet<number>;
  readonly since: number;
  readonly until: number;
  readonly books: Books;
  readonly onDuplicate: (duplicate: Duplicate) => void;
}

/**
 * Counts the visible rows beyond the first of each key, over all partitions of the table: those whose newest row was received in
 * the window.
 *
 * @returns whether all were looked at
 * @throws ClickHouse's errors
 */
export async function countDuplicates(options: DuplicatesOptions): Promise<boolean> {
  const { database, days, workspace, share, shares } = options;
  let keys = 0;
  for (const range of rangesOf(days)) {
    const parameters = { workspace, share, shares, ...range, limit: KEYS_MAX + 1 };
    const found = await database.read<{ workspace: string; ms: number; event: string }>('find-duplicates', parameters);
    keys += found.length;
    if (keys > KEYS_MAX) return false;
    const rows = found.map(({ workspace: name, ms, event }) => ({
      workspace: name,
      event: { uuid: event, ms, isStamped: false },
    }));
    if (rows.length > 0) await countKeys(rows, options);
  }
  return true;
}

async function countKeys(
  keys: readonly {
    readonly workspace: string;
    readonly event: { readonly uuid: string; readonly ms: number; readonly isStamped: boolean };
  }[],
  { database, since, until, books, onDuplicate }: DuplicatesOptions,
): Promise<void> {
  const stored = await findEvents(database, keys);
  const persons = [...stored.values()].flat().map(({ workspace, person }) => ({ workspace, person }));
  const deletions = await findDeletions(database, persons);
  for (const { workspace, event } of keys) {
    const visible = (stored.get(`${workspace}\0${event.uuid}`) ?? []).filter(
      ({ ms, person, received }) => ms === event.ms && (deletions.get(`${workspace}\0${person}`) ?? 0) < received,
    );
    const received = Math.max(0, ...visible.map((row) => row.received));
    if (visible.length < 2 || received < since || received >= until) continue;
    books.add(workspace, received, 'events', 'duplicates', visible.length - 1);
    onDuplicate({ workspace, uuid: event.uuid, ms: event.ms, received, rows: visible.length });
  }
}

/** Returns the ranges of days; the smallest gaps are read as well where there would be too many. */
function rangesOf(days: ReadonlySet<number>): readonly Range[] {
  const ordered = [...days].sort((one, other) => one - other);
  const gaps = ordered.slice(1).map((day, index) => day - (ordered[index] ?? day));
  const smallest = gaps.toSorted((one, other) => other - one)[RANGES_MAX - 1] ?? 1;
  const ranges: { fromMs: number; toMs: number }[] = [];
  for (const [index, day] of ordered.entries()) {
    const last = ranges.at(-1);
    const toMs = (day + 1) * DAY_MS;
    if (last && (gaps[index - 1] ?? 0) <= Math.max(1, smallest)) last.toMs = toMs;
    else ranges.push({ fromMs: day * DAY_MS, toMs });
  }
  return ranges;
}

import { setImmediate as nextTurn } from 'node:timers/promises';

/** How many entries a menu holds in memory: a sample ends with the event that reaches this number. */
export const MENU_ENTRIES_MAX = 100_000;

/** An entry of a menu, and in how many of the sampled events it is. */
export interface MenuEntry {
  readonly text: string;
  /** Tells entries of the same text apart. Default: no other one has it. */
  readonly json?: string;
  readonly count: number;
}

/** How many entries are ordered before other requests have their turn. */
const ENTRIES_PER_TURN = 4_096;

/**
 * Returns the first entries: those that most events have, then by the UTF-8 bytes of their text, then of their JSON. It
 * gives way to other requests, since a menu may have {@link MENU_ENTRIES_MAX} entries.
 */
export async function firstEntries<Entry extends MenuEntry>(
  entries: Iterable<Entry>,
  limit: number,
): Promise<readonly Entry[]> {
  let first: Ranked<Entry>[] = [];
  let added: Ranked<Entry>[] = [];
  const settle = () => {
    first = [...first, ...added].sort(compareRanked).slice(0, limit);
    added = [];
  };
  for (const entry of entries) {
    added.push({ entry, bytes: Buffer.from(entry.text) });
    if (added.length < ENTRIES_PER_TURN) continue;
    settle();
    await nextTurn();
  }
  settle();
  return first.map(({ entry }) => entry);
}

interface Ranked<Entry> {
  readonly entry: Entry;
  /** Of its text. */
  readonly bytes: Buffer;
}

function compareRanked(one: Ranked<MenuEntry>, other: Ranked<MenuEntry>): number {
  return (
    other.entry.count - one.entry.count ||
    Buffer.compare(one.bytes, other.bytes) ||
    Buffer.compare(Buffer.from(one.entry.json ?? ''), Buffer.from(other.entry.json ?? ''))
  );
}

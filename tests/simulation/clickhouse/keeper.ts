import type { Replica } from './replica.ts';
import type { Tables } from './tables.ts';

/** Something that every replica has to do: fetch a part, or remove rows from all parts that come before. */
export interface Entry {
  readonly number: number;
  readonly table: keyof Tables;
  /** What a part has, as it was inserted. */
  readonly rows: Tables | undefined;
  /** Removes rows from those of a part. */
  readonly remove: ((rows: Tables) => void) | undefined;
  /** The replicas that have done it. */
  readonly doneBy: Set<Replica>;
}

/** What replicas know of one another. */
export class Keeper {
  readonly #entries: Entry[] = [];
  readonly #replicas = new Set<Replica>();
  /** The blocks that were inserted: another one that is the same counts as inserted, too. */
  readonly #blocks = new Set<string>();
  /** Pairs of replicas, of which the first cannot fetch from the second. */
  readonly cut = new Set<string>();
  /** The numbers of parts that are not fetched for now, each with the replicas that do not. */
  readonly held = new Map<number, readonly Replica[]>();

  add(replica: Replica): void {
    this.#replicas.add(replica);
  }

  /** An operator declares a replica dead. What it alone has is lost. */
  drop(replica: Replica): void {
    this.#replicas.delete(replica);
  }

  isDropped(replica: Replica): boolean {
    return !this.#replicas.has(replica);
  }

  /** How many replicas there are. */
  get count(): number {
    return this.#replicas.size;
  }

  /** How many replicas have a session. */
  get live(): number {
    return [...this.#replicas].filter(({ hasSession, isUp }) => hasSession && isUp).length;
  }

  /** The number that the next entry gets. */
  get next(): number {
    return this.#entries.length;
  }

  /** Adds what a replica has done, which the others are to do. */
  commit(by: Replica, entry: Pick<Entry, 'table' | 'rows' | 'remove'>): Entry {
    const committed = { ...entry, number: this.#entries.length, doneBy: new Set([by]) };
    this.#entries.push(committed);
    for (const replica of this.#replicas) if (replica !== by) replica.learn(committed);
    return committed;
  }

  /** Whether a block was inserted before; notes that it was. */
  isRepeated(block: string): boolean {
    const isKnown = this.#blocks.has(block);
    this.#blocks.add(block);
    return isKnown;
  }

  /** Whether a replica can get what an entry needs now. */
  isThere(entry: Entry, replica: Replica): boolean {
    if (!entry.rows) return true;
    if (this.held.get(entry.number)?.includes(replica)) return false;
    return [...entry.doneBy].some(
      (other) => other.isUp && !this.isDropped(other) && !this.cut.has(linkOf(replica, other)),
    );
  }

  /** Whether a replica has done everything, but for what is lost. */
  isLevel(replica: Replica): boolean {
    return this.#entries.every((entry) => entry.doneBy.has(replica) || this.#isLost(entry));
  }

  /** Whether a replica has all parts of a table up to a number, but for those that are lost. */
  hasParts(replica: Replica, until: number, table: keyof Tables): boolean {
    return this.#entries
      .slice(0, until)
      .every((entry) => entry.table !== table || !entry.rows || entry.doneBy.has(replica) || this.#isLost(entry));
  }

  /** Whether only replicas have done it that were dropped. */
  #isLost({ doneBy, rows }: Entry): boolean {
    return rows !== undefined && [...doneBy].every((replica) => this.isDropped(replica));
  }
}

export function linkOf(one: Replica, other: Replica): string {
  return `${one.name} ← ${other.name}`;
}

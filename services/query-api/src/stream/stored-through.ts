import { isEndOfBlock, type StoredAt } from './stream-position.ts';

/** What a writer has recorded: everything that Kafka had appended before a time is in blocks up to a number. */
export interface StoringProgress {
  readonly block: number;
  /** In milliseconds since 1970. */
  readonly throughMs: number;
}

/** How many rows are kept: those of half an hour. */
const ROWS_MAX = 1_000;

/** The newest of what the writers of a server have recorded, for the ids of its streams. */
export class StoredThrough {
  /** Both numbers grow from row to row. */
  readonly #rows: StoringProgress[] = [];

  add(row: StoringProgress): void {
    // A row says no more than one that has a later time for the same block, or a lower one.
    while (this.#newest && this.#newest.block >= row.block && this.#newest.throughMs <= row.throughMs) this.#rows.pop();
    if (this.#newest && this.#newest.throughMs >= row.throughMs) return;
    this.#rows.push(row);
    if (this.#rows.length > ROWS_MAX) this.#rows.shift();
  }

  /**
   * Returns a time in milliseconds since 1970 such that everything that Kafka had appended before is stored up to a place; 0 when
   * none is known. It may be earlier than it could be, never later.
   */
  at(place: StoredAt): number {
    const block = lastWholeBlock(place);
    return this.#rows.findLast((row) => row.block <= block)?.throughMs ?? 0;
  }

  get #newest(): StoringProgress | undefined {
    return this.#rows.at(-1);
  }
}

/** Returns the last block of which nothing comes after a place. */
export function lastWholeBlock(place: StoredAt): number {
  return isEndOfBlock(place) ? place.block : place.block - 1;
}

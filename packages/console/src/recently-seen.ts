/** Remembers the keys that it was given last, to tell which come again. */
export class RecentlySeen {
  readonly #max: number;
  /** The oldest first. */
  readonly #keys = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns whether a key is new. */
  add(key: string): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    if (this.#keys.size > this.#max) for (const oldest of this.#keys.values().take(1)) this.#keys.delete(oldest);
    return true;
  }
}

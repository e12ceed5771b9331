import { LRUCache } from 'lru-cache';

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

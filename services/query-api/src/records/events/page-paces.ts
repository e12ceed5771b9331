import { LRUCache } from 'lru-cache';

/** What earlier pages showed of a list: how its events lie in time. It is a hint, and never decides what a page holds. */
export interface Pace {
  /** The time of the newest event, in milliseconds. */
  readonly newestMs?: number;
  /** The time of the oldest event, in milliseconds. */
  readonly oldestMs?: number;
  /** Milliseconds between two events, on average. `Infinity`: too few events to fill a page. */
  readonly msPerEvent?: number;
}

/** How many lists are remembered. Each takes some 300 bytes. */
const LISTS_MAX = 10_000;

/** Remembers the paces of the lists that were read last. */
export class PagePaces {
  readonly #paces = new LRUCache<string, Pace>({ max: LISTS_MAX });

  /** Returns what is known of a list. */
  of(list: string): Pace | undefined {
    return this.#paces.get(list);
  }

  /** Adds to what is known of a list. */
  learn(list: string, pace: Pace): void {
    this.#paces.set(list, { ...this.#paces.get(list), ...pace });
  }
}

import { hash } from 'node:crypto';
import { seededRandom } from '../../kit/random.ts';

/** Random choices; the same seed makes the same ones, for each purpose others. */
export class Random {
  readonly #next: () => number;

  constructor(seed: number, purpose: string) {
    // Seeds that follow each other would begin with nearly the same numbers.
    this.#next = seededRandom(Number.parseInt(hash('sha256', `${purpose} ${seed}`).slice(0, 8), 16));
  }

  /** Returns a number in [0, 1). */
  readonly next = (): number => this.#next();

  /** Returns a whole number from 0 up to, but not including `count`. */
  below(count: number): number {
    return Math.floor(this.#next() * count);
  }

  between(least: number, most: number): number {
    return least + this.#next() * (most - least);
  }

  isTrue(probability: number): boolean {
    return this.#next() < probability;
  }

  /** @throws {Error} when there is nothing to pick from */
  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }
}

import type { LoadResult } from '../processes/load.ts';
import { VoidRun } from '../report/benchmark.ts';

/** Counts of the stored events. */
export interface StoredEvents {
  readonly rows: number;
  readonly distinct: number;
  /** The sum of their numbers, in decimal; see event.ts. */
  readonly numbersSum: string;
}

/** Counts the accepted events of a run, and compares them with the stored ones. */
export class Tally {
  #events = 0;
  #numbersSum = 0n;

  get events(): number {
    return this.#events;
  }

  /** @throws {VoidRun} when a request was refused */
  add({ events, numbersSum, fault }: Pick<LoadResult, 'events' | 'numbersSum' | 'fault'>): void {
    if (fault !== undefined) throw new VoidRun(`a request was refused: ${fault}`);
    this.#events += events;
    this.#numbersSum += BigInt(numbersSum);
  }

  /** @throws {VoidRun} unless every accepted event is stored once */
  expectExactly({ rows, distinct, numbersSum }: StoredEvents): void {
    const exact = rows === this.#events && distinct === this.#events && numbersSum === String(this.#numbersSum);
    if (!exact) throw new VoidRun(`${this.#events} events accepted, ${rows} stored, ${distinct} of them distinct`);
    console.error(`All ${this.#events.toLocaleString('en')} accepted events are stored exactly once.`);
  }
}

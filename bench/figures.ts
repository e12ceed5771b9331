import type { LoadResult } from './load.ts';
import type { StoredEvents } from './system.ts';

/** The loads on the services. There are so many connections that latency does not limit throughput. */
export const LOADS = [
  { eventsPerRequest: 1, connections: 256 },
  { eventsPerRequest: 20, connections: 64 },
] as const;

export const ROUND_MS = 4_000;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** `median (lowest to highest)` */
export function spread(values: readonly number[], digits = 0): string {
  const number = (value: number) => value.toLocaleString('en', { maximumFractionDigits: digits });
  return `${number(median(values))} (${number(Math.min(...values))} to ${number(Math.max(...values))})`;
}

/** Counts the accepted events of all rounds, and compares them with the stored ones. */
export function createTally() {
  let events = 0;
  let numbersSum = 0n;
  return {
    get events() {
      return events;
    },
    /** @throws when a request was refused: then nothing that follows means anything */
    add(result: LoadResult): void {
      if (result.fault !== undefined) throw new Error(`VOID: a request was refused: ${result.fault}`);
      events += result.events;
      numbersSum += BigInt(result.numbersSum);
    },
    /** Prints and returns whether every accepted event is stored once. If not, the figures are void. */
    verdict(stored: StoredEvents): boolean {
      const exact = stored.rows === events && stored.distinct === events && stored.numbersSum === String(numbersSum);
      console.log(
        exact
          ? `All ${events.toLocaleString('en')} accepted events are stored exactly once.`
          : `VOID: ${events} events accepted, ${stored.rows} stored, ${stored.distinct} of them distinct.`,
      );
      return exact;
    },
  };
}

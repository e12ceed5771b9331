import type { Fault } from './faults.ts';
import { type Kind, type Outcome, runSchedule } from './run-schedule.ts';

/** How many schedules are tried to find a short one. */
const TRIES = 300;

/**
 * Leaves out faults of a schedule that fails, as long as it still fails: first many at a time, then one by one.
 *
 * @returns the outcome of the shortest schedule that was found
 */
export async function shrink(kind: Kind, seed: number, failing: Outcome): Promise<Outcome> {
  let shortest = failing;
  let tries = 0;
  for (let size = Math.ceil(failing.faults.length / 2); size >= 1; size = size > 1 ? Math.ceil(size / 2) : 0) {
    for (let start = 0; start < shortest.faults.length && tries < TRIES; tries += 1) {
      const kept: readonly Fault[] = shortest.faults.toSpliced(start, size);
      const outcome = await runSchedule(kind, seed, kept);
      if (outcome.violation === undefined) start += size;
      else shortest = outcome;
    }
  }
  return shortest;
}

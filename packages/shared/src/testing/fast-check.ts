// fast-check, whose random choices the seed of the run decides: tests import it from here.
import fc from 'fast-check';
import { inject } from 'vitest';

/** The seed in `SLUICE_TEST_SEED`, or a new one in each run. */
export const SEED = inject('seed');

export const HOW_TO_REPEAT = `SLUICE_TEST_SEED=${SEED} makes the same random choices again`;

fc.configureGlobal({
  seed: SEED,
  reporter(run) {
    if (!run.failed) return;
    throw new Error(`${fc.defaultReportMessage(run)}\n${HOW_TO_REPEAT}`, { cause: run.errorInstance });
  },
});

let samples = 0;

/** Returns random values: others with each call, and the same in each run of a seed. `fc.sample` repeats itself. */
export function sample<Value>(arbitrary: fc.Arbitrary<Value>, count: number): Value[] {
  samples += 1;
  return fc.sample(arbitrary, { numRuns: count, seed: SEED + samples });
}

export default fc;

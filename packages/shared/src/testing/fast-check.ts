// fast-check, whose random choices the seed of the run decides: tests import it from here.
import fc from 'fast-check';
import { inject } from 'vitest';

/** Of `SLUICE_TEST_SEED`, or new in each run. */
export const SEED = inject('seed');

export const HOW_TO_REPEAT = `SLUICE_TEST_SEED=${SEED} makes the same random choices again`;

fc.configureGlobal({
  seed: SEED,
  reporter(run) {
    if (!run.failed) return;
    throw new Error(`${fc.defaultReportMessage(run)}\n${HOW_TO_REPEAT}`, { cause: run.errorInstance });
  },
});

export default fc;

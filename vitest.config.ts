import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/checks/longest-first.ts';

/** Test files that run at a time. One more than there are cores, because most tests also wait for engines and services. */
const WORKERS = availableParallelism() + 1;

/** The test files of `npm run test:faults`. */
export const FAULT_TESTS: readonly string[] = ['tests/faults/*.test.ts', '{services,packages,tests}/**/*.slow.test.ts'];

export default defineConfig({
  test: {
    include: ['{services,packages}/*/src/**/*.test.ts', '{tests,scripts,bench}/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...FAULT_TESTS],
    sequence: { sequencer: LongestFirst },
    globalSetup: ['tests/support/vitest-setup.ts'],
    // Long enough for a busy machine: these only end a test that hangs.
    testTimeout: 900_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: WORKERS,
  },
});

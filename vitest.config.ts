import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/checks/longest-first.ts';

/** Test files that run at a time. One more than there are cores, because most tests also wait for engines and services. */
const WORKERS = availableParallelism() + 1;

export default defineConfig({
  test: {
    include: [
      'services/*/src/**/*.test.ts',
      'packages/*/src/**/*.test.ts',
      'tests/**/*.test.ts',
      'scripts/**/*.test.ts',
    ],
    globalSetup: ['tests/support/vitest-setup.ts'],
    sequence: { sequencer: LongestFirst },
    // Long enough for a busy machine: these only end a test that hangs.
    testTimeout: 900_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: WORKERS,
  },
});

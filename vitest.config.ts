import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/checks/longest-first.ts';
import { TIERS } from './scripts/checks/tiers.ts';

/** What every test file runs with. */
export const SETTINGS = {
  // Long enough for a busy machine: these only end a test that hangs.
  testTimeout: 900_000,
  hookTimeout: 300_000,
  expect: { poll: { timeout: 120_000 } },
  // One more than there are cores, because most tests also wait. With three more, the same tests took two cores 39 % longer
  // and 18 % more CPU time: their engines and services are in one another's way.
  maxWorkers: availableParallelism() + 1,
  // Concurrent tests of a file wait most of the time.
  maxConcurrency: 20,
};

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    globalSetup: ['tests/kit/choose-seed.ts'],
    ...SETTINGS,
    projects: TIERS.map(({ name, include, exclude = [], setup, isolate }) => ({
      test: {
        ...SETTINGS,
        name,
        include: [...include],
        exclude: [...configDefaults.exclude, ...exclude],
        globalSetup: [...setup],
        isolate,
      },
    })),
  },
});

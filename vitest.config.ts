import { availableParallelism, totalmem } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/checks/longest-first.ts';

const GIBIBYTE = 1_024 ** 3;

/** Most tests wait for engines and services, so two per core keep the cores busy; each may need 2 GiB of memory. */
const WORKERS_PER_CORE = 2;
const WORKER_MEMORY_BYTES = 2 * GIBIBYTE;
const WORKERS = { min: 2, max: 8 };

function countWorkers(): number {
  const affordable = Math.floor(totalmem() / WORKER_MEMORY_BYTES);
  const wanted = Math.min(WORKERS_PER_CORE * availableParallelism(), affordable);
  return Math.min(Math.max(wanted, WORKERS.min), WORKERS.max);
}

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
    // The run keeps every core busy, and a developer's machine does other work besides: a time limit here only ends a
    // test that hangs.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: countWorkers(),
  },
});

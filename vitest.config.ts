import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      'services/*/src/**/*.test.ts',
      'packages/*/src/**/*.test.ts',
      'tests/**/*.test.ts',
      'scripts/**/*.test.ts',
    ],
    globalSetup: ['tests/support/vitest-setup.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Twelve minutes of tests keep two cores busy: one second, vitest's own limit, says nothing about the software.
    expect: { poll: { timeout: 20_000 } },
    maxWorkers: 2,
  },
});

import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { configDefaults, defineConfig } from 'vitest/config';
import base, { FAULT_TESTS } from '../../vitest.config.ts';

// The suite of `npm run test:faults`. Its files start engines of their own, so fewer of them run at a time.
export default defineConfig({
  ...base,
  root: join(import.meta.dirname, '..', '..'),
  test: {
    ...base.test,
    include: [...FAULT_TESTS],
    exclude: configDefaults.exclude,
    maxWorkers: availableParallelism(),
  },
});

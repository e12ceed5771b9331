import { configDefaults, defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const engines = process.env['SLUICE_MUTATE_ENGINES'];

// Mutations name files of `npm test` and of `npm run test:faults`.
if (base.test) base.test.exclude = configDefaults.exclude;
// With engines that run already, the tests share them; without, vitest starts its own.
if (engines && base.test) base.test.globalSetup = [];

export default mergeConfig(
  base,
  defineConfig({
    root: process.cwd(),
    test: { bail: 1, ...(engines && { provide: JSON.parse(engines) as Record<string, unknown> as never }) },
  }),
);

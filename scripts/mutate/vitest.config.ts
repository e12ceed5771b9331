import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const engines = process.env['SLUICE_MUTATE_ENGINES'];

// With engines that run already, the tests share them; without, vitest starts its own.
if (engines && base.test) base.test.globalSetup = [];

export default mergeConfig(
  base,
  defineConfig({
    root: process.cwd(),
    test: { bail: 1, ...(engines && { provide: JSON.parse(engines) as Record<string, unknown> as never }) },
  }),
);

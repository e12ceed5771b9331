// The tests of the folders that SLUICE_MUTATE_FOLDERS lists, for Stryker.
import { configDefaults, defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const folders = (process.env['SLUICE_MUTATE_FOLDERS'] ?? '').split(',');
if (base.test) base.test.include = [];

export default mergeConfig(
  base,
  defineConfig({
    root: process.cwd(),
    test: { include: folders.map((folder) => `${folder}/*.test.ts`), exclude: configDefaults.exclude },
  }),
);

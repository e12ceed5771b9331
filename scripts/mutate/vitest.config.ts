// The tests of the folders that SLUICE_MUTATE_FOLDERS lists, for Stryker.
import { defineConfig } from 'vitest/config';
import { SETTINGS } from '../../vitest.config.ts';

const folders = (process.env['SLUICE_MUTATE_FOLDERS'] ?? '').split(',');

export default defineConfig({
  root: process.cwd(),
  test: {
    ...SETTINGS,
    include: folders.map((folder) => `${folder}/*.test.ts`),
    globalSetup: ['tests/kit/choose-seed.ts', 'tests/kit/start-engines.ts'],
  },
});

import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

// The suite of `npm run test:upgrade`: it needs the repository's history.
export default defineConfig({
  ...base,
  root: join(import.meta.dirname, '..', '..'),
  test: { ...base.test, include: ['tests/upgrade/*.suite.ts'] },
});

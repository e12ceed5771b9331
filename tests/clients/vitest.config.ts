import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

// The suite of `npm run test:clients`: it needs clients of others, which are installed first.
export default defineConfig({
  ...base,
  root: join(import.meta.dirname, '..', '..'),
  test: {
    ...base.test,
    include: ['tests/clients/*.suite.ts'],
    globalSetup: ['tests/clients/install-all.ts', ...[base.test?.globalSetup ?? []].flat()],
  },
});

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SLOWEST_FILES } from './longest-first.ts';

test.each(SLOWEST_FILES)('%s, which is to start first, exists', (file) => {
  expect(existsSync(join(import.meta.dirname, '..', '..', file))).toBe(true);
});

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { withLimits } from './limits-document.ts';

test('docs/guide/api.md has every limit as it is in force', async () => {
  const text = await readFile(new URL('../../../docs/guide/api.md', import.meta.url), 'utf8');
  // npm run hostile -- --write-limits writes them.
  expect(text).toBe(withLimits(text));
});

import { readFile } from 'node:fs/promises';
import { expect, inject, test } from 'vitest';
import { readSchema } from './current-schema.ts';

test('docs/design/schema.sql has the tables that the migrations create', async () => {
  const text = await readFile(new URL('../../docs/design/schema.sql', import.meta.url), 'utf8');
  // npm run schema -- --write writes it.
  expect(text).toBe(await readSchema(inject('clickhouseUrl')));
});

import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { generateQuerySchema } from '../scripts/query-schema.ts';

test('the types of the query client are those of the OpenAPI document (node packages/client/scripts/query-schema.ts)', async () => {
  const written = await readFile(new URL('query-schema.ts', import.meta.url), 'utf8');
  expect(written).toBe(await generateQuerySchema());
});

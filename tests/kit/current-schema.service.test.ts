import { readFile } from 'node:fs/promises';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { expect, inject, test } from 'vitest';
import { readSchema } from './current-schema.ts';

test('docs/design/schema.sql has the tables that the migrations create', async () => {
  const { config, release } = await takeDatabase(inject('clickhouseUrl'));
  await using client = createClickHouse(config, { application: 'test', requestTimeoutMs: 30_000, connectionsMax: 1 });
  const text = await readFile(new URL('../../docs/design/schema.sql', import.meta.url), 'utf8');
  // npm run schema -- --write writes it.
  expect(text).toBe(await readSchema(client));
  await release();
});

import { readFile } from 'node:fs/promises';
import { configSchema as ingestSchema } from '@sluice/ingest-api/config';
import { configSchema as querySchema } from '@sluice/query-api/config';
import { configSchema as trenchSchema } from '@sluice/trench-api/config';
import { configSchema as writerSchema } from '@sluice/writer/config';
import { expect, test } from 'vitest';

test('docs/operate/configuration.md explains every variable of every service', async () => {
  const text = await readFile(new URL('../../docs/operate/configuration.md', import.meta.url), 'utf8');
  const variables = [ingestSchema, writerSchema, querySchema, trenchSchema].flatMap(({ shape }) => Object.keys(shape));
  expect(variables.filter((variable) => !text.includes(`\`${variable}\``))).toEqual([]);
});

import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createTestClients } from '../testing/clients.ts';
import { forgetBlockNumbers } from './identity.ts';

test('a restored database has another id, and no progress with the old numbers; all else of its identity stays', async () => {
  const { client, read, close } = await createTestClients(inject('clickhouseUrl'), createDatabase);
  onTestFinished(close);
  const identity = { server: 'a1', group_id: 'g.a1', partitions: '0-23', state: 'incomplete', detail: 'given up' };
  const id = '0190a0a0-0000-7000-8000-00000000000a';
  // As if ClickHouse's clock had been ahead.
  const recorded = { id, ...identity, recorded_at: (Date.now() + 3_600_000) * 1_000 };
  await client.insert({ table: 'database_identity', values: [recorded], format: 'JSONEachRow' });
  await client.command({ query: 'INSERT INTO storing_progress SELECT now64(3), now64(3), 900' });
  const newest = () => read('SELECT * EXCEPT recorded_at FROM database_identity ORDER BY recorded_at DESC, id LIMIT 1');

  await forgetBlockNumbers(client, new Set(['events']));
  expect(await newest()).toEqual([{ id, ...identity }]);
  await forgetBlockNumbers(client, new Set(['database_identity', 'storing_progress']));
  expect(await newest()).toEqual([{ id: expect.not.stringMatching(id), ...identity }]);
  expect(await read('SELECT * FROM storing_progress')).toEqual([]);
});

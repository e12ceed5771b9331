import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { takeTenant } from '../kit/shared-pipeline.ts';

test('a deleted user is erased from storage in the background, and what came after stays', async () => {
  const pipeline = await takeTenant('erasure');
  const submit = async (...events: object[]) =>
    await pipeline.submit({ foreignUserGroupId: 'erase', foreignUserId: 'mal', events });
  await submit({ event: 'before' }, { event: 'before' });
  await pipeline.settled(2);
  await pipeline.deleteUser('mal');
  await submit({ event: 'after' });
  await pipeline.drained();
  const count = async (where: string) => {
    const sql = `SELECT count() FROM ${pipeline.database}.events WHERE workspace_id = '${pipeline.workspace}' AND ${where}`;
    return Number(await readClickHouse(inject('clickhouseUrl'), sql));
  };
  await until('the events to be erased', async () => (await count("user_id = 'mal' AND event = 'before'")) === 0);
  expect(await count("user_id = 'mal'")).toBe(1);
  await pipeline.settled(1);
});

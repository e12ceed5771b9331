import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { batchOf, createTestStore, eventRow, type TestStore } from '../testing/store.ts';
import { Fenced } from './fenced.ts';
import { createOwnership } from './ownership.ts';

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'));
});
afterAll(() => db.close());

async function count(): Promise<number> {
  return (await db.read<{ rows: number }>('SELECT count() AS rows FROM events'))[0]?.rows ?? -1;
}

test('a writer that wakes up after its partitions went to others is fenced, and stores nothing', async () => {
  const [old, young] = [db.writer(), db.writer()];
  const oldEpoch = await old.ownership.begin(3, 'old');
  await old.store(batchOf([eventRow()]), oldEpoch);
  const youngEpoch = await young.ownership.begin(4, 'young');
  await expect(old.store(batchOf([eventRow()]), oldEpoch)).rejects.toThrow(Fenced);
  await young.store(batchOf([eventRow()]), youngEpoch);
  expect(await count()).toBe(2);
  await expect(old.ownership.begin(3, 'old')).rejects.toThrow(Fenced);
  const sibling = db.writer();
  await sibling.store(batchOf([eventRow()]), await sibling.ownership.begin(4, 'sibling'));
  expect(await count()).toBe(3);
});

test('a member of an older generation is fenced, unless Kafka counts it to the group now', async () => {
  const groupId = 'counted anew';
  const ownershipOf = (isMember: boolean) =>
    createOwnership({ client: db.client, groupId, writerId: 'w', isMember: async () => isMember });
  await ownershipOf(true).begin(7, 'm');
  await expect(ownershipOf(false).begin(6, 'm')).rejects.toThrow(Fenced);
  expect(await ownershipOf(true).begin(1, 'm')).toEqual({ incarnation: 2, generation: 1 });
});

test("the take-over of a newer generation ends an older generation's insert", async () => {
  const [old, young] = [db.writer(), db.writer()];
  const oldEpoch = await old.ownership.begin(10, 'old');
  const query_id = `${old.ownership.queryIdPrefix(oldEpoch)}/slow`;
  const slow = db.client
    .command({
      query: 'SELECT sleepEachRow(0.1) FROM numbers(1000) FORMAT Null',
      clickhouse_settings: { max_block_size: '10' },
      query_id,
    })
    .then(
      () => 'finished',
      () => 'killed',
    );
  const running = async () =>
    (await db.read<{ n: number }>(`SELECT count() AS n FROM system.processes WHERE query_id = '${query_id}'`))[0]?.n;
  await expect.poll(running).toBe(1);
  await young.ownership.begin(11, 'young');
  expect(await running()).toBe(0);
  expect(await slow).toBe('killed');
});

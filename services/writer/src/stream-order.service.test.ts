import type { Logger } from '@sluice/shared/base/log';
import { eventually } from '@sluice/shared/testing/eventually';
import type { OwnEpoch } from '@sluice/storage/protocol/epoch';
import { expect, inject, onTestFinished, test } from 'vitest';
import { StreamOrder } from './stream-order.ts';
import { batchOf, createTestStore, eventRow, NOON } from './testing/store.ts';

const GROUP = 'order';

type TestStore = Awaited<ReturnType<typeof createTestStore>>;

/** Starts to record the order of two databases, whose parts have the same names as those of replicas where both store the same. */
async function startOrder(stores: readonly [TestStore, TestStore], generation: number) {
  const reasons: string[] = [];
  const epoch: OwnEpoch = { incarnation: 1, generation, server: '' };
  const order = new StreamOrder({
    client: stores[0].writerClient,
    others: () => [{ client: stores[1].writerClient, server: '' }],
    epoch: () => epoch,
    groupId: GROUP,
    ownership: { queryIdPrefix: () => `order-${generation}` },
    logger: { warn: ({ reason }: { reason: string }) => reasons.push(reason) } as unknown as Logger,
  });
  onTestFinished(() => order.stop());
  order.setOwner(true);
  await order.start();
  return { order, reasons };
}

const records = (store: TestStore) =>
  store.read<{ firsts: number[]; lasts: number[] }>(
    'SELECT firsts, lasts FROM stream_order FINAL WHERE record > 0 ORDER BY record',
  );
const toldThrough = async (store: TestStore) =>
  (await store.read<{ through: number }>('SELECT toUnixTimestamp64Milli(max(through)) AS through FROM stream_order'))[0]
    ?.through;

test('a block gets a number once two replicas have it, and a replica is told once it has all; a newer owner goes on', async () => {
  const stores = [
    await createTestStore(inject('clickhouseUrl')),
    await createTestStore(inject('clickhouseUrl')),
  ] as const;
  const [one, other] = stores;
  for (const store of stores) onTestFinished(() => store.close());
  const { order, reasons } = await startOrder(stores, 1);
  order.noteStored(NOON);
  for (const store of stores) await eventually(() => toldThrough(store)).toBe(NOON);

  await one.store(batchOf([eventRow()]));
  order.noteStored(NOON + 1);
  await eventually(() => toldThrough(one)).toBe(NOON + 1);
  expect([await records(one), await records(other), await toldThrough(other)]).toEqual([[], [], NOON]);
  await other.store(batchOf([eventRow()]));
  await eventually(() => toldThrough(other)).toBe(NOON + 1);
  const [first] = await records(one);
  for (const store of stores) expect(await records(store)).toEqual([first]);

  const record = (generation: number) => ({ group_id: GROUP, incarnation: 1, generation, leader_id: 'leader' });
  for (const { client } of stores)
    await client.insert({ table: 'writer_epochs', values: [record(2)], format: 'JSONEachRow' });
  for (const store of stores) await store.store(batchOf([eventRow()]));
  await eventually(() => reasons).toContainEqual(expect.stringContaining('a newer epoch owns the partitions'));
  expect(await records(one)).toEqual([first]);
  await startOrder(stores, 2);
  for (const store of stores) await eventually(async () => (await records(store)).length).toBe(2);
  const next = (first?.lasts[0] ?? 0) + 1;
  for (const store of stores) expect(await records(store)).toEqual([first, { firsts: [next], lasts: [next] }]);
});

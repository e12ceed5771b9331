import type { Logger } from '@sluice/shared/base/log';
import { eventually } from '@sluice/shared/testing/eventually';
import type { OwnEpoch } from '@sluice/storage/protocol/epoch';
import { Registry } from 'prom-client';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createWriterMetrics } from './metrics.ts';
import { StreamOrder } from './stream-order.ts';
import { batchOf, createTestStore, eventRow, NOON } from './testing/store.ts';

const GROUP = 'order';

type TestStore = Awaited<ReturnType<typeof createTestStore>>;

/** Starts to record the order of databases, whose parts have the same names as those of replicas where all store the same. */
async function startOrder([own, ...others]: readonly TestStore[], generation = 1) {
  const reasons: string[] = [];
  const registry = new Registry();
  const metrics = createWriterMetrics(registry);
  const epoch: OwnEpoch = { incarnation: 1, generation, server: '' };
  if (!own) throw new Error('there is no database');
  const order = new StreamOrder({
    recorded: metrics.orderRecorded,
    client: own.writerClient,
    others: () => others.map(({ writerClient: client }) => ({ client, server: '' })),
    epoch: () => epoch,
    groupId: GROUP,
    ownership: { queryIdPrefix: () => `order-${generation}` },
    logger: { warn: ({ reason }: { reason: string }) => reasons.push(reason) } as unknown as Logger,
  });
  onTestFinished(() => order.stop());
  order.setOwner(true);
  await order.start();
  const isRecorded = async () =>
    /_timestamp_seconds \d/.test(
      await registry.getSingleMetricAsString('sluice_writer_stream_order_timestamp_seconds'),
    );
  return { order, reasons, isRecorded };
}

async function createStores(): Promise<readonly [TestStore, TestStore, TestStore]> {
  const create = async () => {
    const store = await createTestStore(inject('clickhouseUrl'));
    onTestFinished(() => store.close());
    return store;
  };
  const stores = [await create(), await create(), await create()] as const;
  for (const store of stores) await countBlocksAnew(store);
  return [...stores];
}

/** Databases are used again, and a table never uses the number of a block again. */
async function countBlocksAnew(store: TestStore): Promise<void> {
  await run(store, 'CREATE TABLE new_events AS events');
  await run(store, 'EXCHANGE TABLES events AND new_events');
  await run(store, 'DROP TABLE new_events SYNC');
}

/** The number that a replica was told last. */
const told = async (store: TestStore) =>
  (await store.read<{ number: number }>('SELECT max(number) AS number FROM stream_order WHERE record = 0'))[0]?.number;
const numbers = async (store: TestStore) =>
  (
    await store.read<{ record: number }>('SELECT DISTINCT record FROM stream_order WHERE record > 0 ORDER BY record')
  ).map(({ record }) => record);
const run = (store: TestStore, query: string) => store.client.command({ query });

const records = (store: TestStore) =>
  store.read<{ firsts: number[]; lasts: number[] }>(
    'SELECT firsts, lasts FROM stream_order FINAL WHERE record > 0 ORDER BY record',
  );
const toldThrough = async (store: TestStore) =>
  (await store.read<{ through: number }>('SELECT toUnixTimestamp64Milli(max(through)) AS through FROM stream_order'))[0]
    ?.through;

test('a block gets a number once two replicas have it, and a replica is told once it has all; a newer owner goes on', async () => {
  const [one, other] = await createStores();
  const stores = [one, other];
  const { order, reasons, isRecorded } = await startOrder(stores, 1);
  order.noteStored(NOON);
  for (const store of stores) await eventually(() => toldThrough(store)).toBe(NOON);
  await eventually(isRecorded).toBe(true);

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
  // The next owner says when it was recorded last.
  order.setOwner(false);
  await eventually(isRecorded).toBe(false);
  await startOrder(stores, 2);
  for (const store of stores) await eventually(async () => (await records(store)).length).toBe(2);
  const next = (first?.lasts[0] ?? 0) + 1;
  for (const store of stores) expect(await records(store)).toEqual([first, { firsts: [next], lasts: [next] }]);
});

test('a replica that always lacks the newest block is told of all before it, and until when it has everything', async () => {
  const stores = await createStores();
  const [one, other, late] = stores;
  const { order } = await startOrder(stores);
  order.noteStored(NOON);
  await eventually(() => toldThrough(late)).toBe(NOON);
  for (let count = 1; count <= 3; count += 1) {
    for (const store of [one, other]) await store.store(batchOf([eventRow()]));
    order.noteStored(NOON + count);
    await eventually(async () => (await numbers(one)).length).toBe(count);
    const newest = (await numbers(one)).at(-1) ?? 0;
    if (count === 1) continue;
    await late.store(batchOf([eventRow()]));
    // Up to the number that it lacks.
    await eventually(() => told(late)).toBe(newest - 1);
    // At the latest what was stored before the block that it has got now.
    await eventually(() => toldThrough(late)).toBeGreaterThanOrEqual(NOON + count - 2);
    expect(await toldThrough(late)).toBeLessThan(NOON + count);
  }
});

test('records that were removed after eight days are not waited for', async () => {
  const stores = (await createStores()).slice(0, 2);
  const [one] = stores as [TestStore];
  for (const store of stores)
    await run(
      store,
      `INSERT INTO stream_order (record, number, recorded_at)
        SELECT number * (toUnixTimestamp64Milli(now64(3)) - 9 * 86400000), toUnixTimestamp64Milli(now64(3)) - 9 * 86400000,
          now64(3) - INTERVAL 7 DAY FROM numbers(2)`,
    );
  const { order, reasons } = await startOrder(stores);
  order.noteStored(NOON);
  for (const store of stores) await eventually(() => toldThrough(store)).toBe(NOON);
  for (const store of stores) {
    await run(store, `ALTER TABLE stream_order DELETE WHERE record > 0 SETTINGS mutations_sync = 2`);
    await store.store(batchOf([eventRow()]));
  }
  order.noteStored(NOON + 1);
  for (const store of stores) await eventually(() => toldThrough(store)).toBe(NOON + 1);
  expect((await numbers(one)).length).toBe(1);
  expect(reasons).not.toContainEqual(expect.stringContaining('no replica that answers has the last record'));
});

test('where one replica takes no records, the others get them, and are told', async () => {
  const stores = await createStores();
  const [full, ...healthy] = stores;
  const { order, reasons } = await startOrder(stores);
  order.noteStored(NOON);
  for (const store of stores) await eventually(() => toldThrough(store)).toBe(NOON);
  await run(full, 'ALTER TABLE stream_order ADD CONSTRAINT is_full CHECK record = 0');
  onTestFinished(async () => void (await run(full, 'ALTER TABLE stream_order DROP CONSTRAINT is_full')));
  for (const store of stores) await store.store(batchOf([eventRow()]));
  for (const store of healthy) {
    await eventually(async () => (await numbers(store)).length).toBe(1);
    await eventually(() => told(store)).toBe((await numbers(store))[0]);
  }
  await eventually(() => reasons).toContainEqual(expect.stringContaining('is_full'));
  expect(await told(full)).not.toBe((await numbers(healthy[0] as TestStore))[0]);
});

test('a replica gets as many records as it lacks, and the others are told meanwhile', async () => {
  const stores = await createStores();
  const [one, other, empty] = stores;
  const first = Date.now() - 100_000;
  for (const store of [one, other])
    await run(
      store,
      `INSERT INTO stream_order (record, number, partitions, firsts, lasts)
        SELECT number = 0 ? 0 : ${first} + number, ${first} + number, [202601], [number], [number] FROM numbers(451)`,
    );
  await startOrder(stores);
  for (const store of [one, other]) await eventually(() => told(store)).toBe(first + 450);
  await eventually(() => numbers(empty)).toEqual(await numbers(one));
  for (const store of stores) await store.store(batchOf([eventRow()]));
  for (const store of stores) await eventually(async () => (await numbers(store)).length).toBe(451);
});

test('blocks that ClickHouse counts anew are new to the next owner', async () => {
  const stores = (await createStores()).slice(0, 2);
  const [one] = stores as [TestStore];
  const counted = batchOf([eventRow()]);
  for (const store of stores) await store.store(counted);
  const [partition] = await one.read<{ id: number }>('SELECT toUInt32(any(_partition_id)) AS id FROM events');
  for (const store of stores)
    await run(
      store,
      `INSERT INTO stream_order (record, number, partitions, firsts, lasts)
        VALUES (0, 1000, [${partition?.id}], [0], [100000]), (1000, 1000, [${partition?.id}], [100000], [100000])`,
    );
  const { order } = await startOrder(stores);
  // It has looked what is there once it tells something.
  order.noteStored(NOON);
  for (const store of stores) await eventually(() => toldThrough(store)).toBe(NOON);
  for (const store of stores) await store.store(batchOf([eventRow()]));
  for (const store of stores) await eventually(async () => (await numbers(store)).length).toBe(2);
});

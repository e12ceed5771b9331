import { until } from '@sluice/shared/testing/until';
import { batchOf, changeRow, createTestStore, eventRow, NOON, type TestStore } from '@sluice/writer/testing/store';
import { expect, inject, test } from 'vitest';
import { ownClickHouse } from '../support/engines.ts';
import { startStatementProxy } from '../support/statement-proxy.ts';

function rowsOf(count: number) {
  return Array.from({ length: count }, (_, index) => eventRow({ timestamp: NOON + index }));
}

async function countsOf(db: TestStore): Promise<{ rows: number; unique: number }> {
  const [counts] = await db.read<{ rows: number; unique: number }>(
    'SELECT count() AS rows, uniqExact(timestamp, uuid) AS unique FROM events',
  );
  return counts as { rows: number; unique: number };
}

test('an insert that still runs when the writer gives it up is ended, and stores nothing', async () => {
  await using clickhouse = await ownClickHouse({ profile: { function_sleep_max_microseconds_per_block: '60000000' } });
  const db = await createTestStore(clickhouse.url);
  // The first insert takes ten seconds; the writer waits for 1.5 s.
  await db.client.command({ query: 'ALTER TABLE events ADD CONSTRAINT slow CHECK sleepEachRow(0.1) = 0' });
  const storedBefore: number[] = [];
  await using proxy = await startStatementProxy(clickhouse.url, async (name, moment) => {
    if (name === 'store-events' && moment === 'before') storedBefore.push((await countsOf(db)).rows);
    return 'go on';
  });
  const writer = db.writer({ url: proxy.url, requestTimeoutMs: 1_500 });
  const batch = writer.open(
    batchOf(rowsOf(100)),
    await writer.ownership.begin({ generation: 1, memberId: 'member', leaderId: 'leader' }),
  );
  await expect(batch.store()).rejects.toThrow(/[Tt]imeout/);
  await db.client.command({ query: 'ALTER TABLE events DROP CONSTRAINT slow' });
  await until('the batch to be stored', () => batch.store().catch(() => undefined));
  expect(storedBefore).toEqual([0, 0]);
  expect(await countsOf(db)).toEqual({ rows: 100, unique: 100 });
  await db.close();
});

test('an insert that reaches ClickHouse only when its batch is being stored again stores nothing', async () => {
  const clickhouseUrl = inject('clickhouseUrl');
  const db = await createTestStore(clickhouseUrl);
  const again = Promise.withResolvers<void>();
  let inserts = 0;
  await using proxy = await startStatementProxy(clickhouseUrl, async (name, moment) => {
    if (name !== 'store-events' || moment === 'after') return 'go on';
    inserts += 1;
    if (inserts === 1) return { late: again.promise };
    again.resolve();
    return 'go on';
  });
  const writer = db.writer({ url: proxy.url });
  const batch = writer.open(
    batchOf(rowsOf(40_000)),
    await writer.ownership.begin({ generation: 1, memberId: 'member', leaderId: 'leader' }),
  );
  await expect(batch.store()).rejects.toThrow();
  await until('the batch to be stored', () => batch.store().catch(() => undefined));
  await until('every insert to have ended', async () => {
    const query = "SELECT 1 FROM system.processes WHERE query_id LIKE '%/store-events/%'";
    return (await db.read(query)).length === 0;
  });
  expect(inserts).toBe(2);
  expect(await countsOf(db)).toEqual({ rows: 40_000, unique: 40_000 });
  await db.close();
});

test('an event whose user is deleted while its batch is being stored is left out by the insert itself', async () => {
  const clickhouseUrl = inject('clickhouseUrl');
  const db = await createTestStore(clickhouseUrl);
  const epoch = { incarnation: 1, generation: 1 };
  const received = (microseconds: number) => NOON * 1_000 + microseconds;
  const deletion = changeRow({ id: 'jane', operation: 'delete', version: received(10) });
  // The deletion could be erased before the insert ends, which would then bring the event back.
  await using proxy = await startStatementProxy(clickhouseUrl, async (name, moment) => {
    if (name === 'store-events' && moment === 'before') await db.store(batchOf([], [deletion]));
    return 'go on';
  });
  const events = [5, 15].map((microseconds) => eventRow({ user_id: 'jane', received_at: received(microseconds) }));
  await db.writer({ url: proxy.url }).store(batchOf(events), epoch);
  expect(await db.read('SELECT toUnixTimestamp64Micro(received_at) % 100 AS received FROM events')).toEqual([
    { received: 15 },
  ]);
  await db.close();
});

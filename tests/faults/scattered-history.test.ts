import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { batchOf, createTestStore, eventRow, type TestStore } from '@sluice/writer/testing/store';
import { expect, test } from 'vitest';
import { ownClickHouse } from '../kit/engines.ts';
import { MONTHS, timestamps } from '../kit/scattered-history.ts';

async function count(db: TestStore, query: string): Promise<number> {
  const [row] = await db.read<{ value: string }>(query);
  return Number(row?.value);
}

test('a batch of history that is scattered over 300 months makes few parts, and is stored once', async () => {
  await using clickhouse = await ownClickHouse();
  const db = await createTestStore(clickhouse.url);
  const receivedAt = Date.UTC(2026, 2, 1) * 1_000;
  const rows = timestamps(0).map((timestamp) => eventRow({ timestamp, received_at: receivedAt }));
  const syncs = () => count(db, "SELECT sum(value) AS value FROM system.events WHERE event = 'FileSync'");
  const before = await syncs();
  await db.store(batchOf(rows));
  expect((await syncs()) - before).toBeLessThan(600);
  const partitions = `SELECT uniqExact(partition) AS value FROM system.parts WHERE database = currentDatabase() AND table = 'events' AND active`;
  expect(await count(db, partitions)).toBeLessThanOrEqual(26);
  await db.store(batchOf(rows));
  expect(await count(db, 'SELECT count() AS value FROM events')).toBe(MONTHS);
  await mergeParts(db.client, 'events');
  expect(await count(db, 'SELECT count() AS value FROM events')).toBe(MONTHS);
  await db.close();
});

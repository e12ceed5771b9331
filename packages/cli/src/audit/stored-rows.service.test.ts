import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { createTestClients, type TestClients } from '@sluice/storage/testing/clients';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { Database, STATEMENTS } from './database.ts';
import { Workspaces } from './intake.ts';
import { readUuid, STORED_BYTES } from './records.ts';
import { Slices } from './slices.ts';
import { readStoredEvents } from './stored-rows.ts';

const SELECTION = { workspace: '', share: 1, shares: 1 };
/** An hour of the 3rd of November, in microseconds. */
const HOUR = { from: Date.UTC(2026, 10, 3, 12) * 1_000, to: Date.UTC(2026, 10, 3, 13) * 1_000 };

let db: TestClients;

beforeAll(async () => {
  db = await createTestClients(inject('clickhouseUrl'));
});
afterAll(() => db.close());

/** Stores events of one hour, each a millisecond after the other. */
async function storeEvents(hour: string, count: number): Promise<void> {
  await db.client.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
      SELECT 'w', toDateTime64({hour:String}, 3, 'UTC') + toIntervalMillisecond(number) AS stamp, generateUUIDv4(), 'e', stamp
      FROM numbers({count:UInt64})`,
    query_params: { hour, count },
  });
}

/** How many rows ClickHouse reads for the events of the hour. */
async function rowsRead(): Promise<number> {
  const query = `EXPLAIN ESTIMATE ${STATEMENTS['read-events'].sql}`;
  const result = await db.client.query({ query, query_params: { ...SELECTION, ...HOUR }, format: 'JSONEachRow' });
  return (await result.json<{ rows: number }>()).reduce((sum, { rows }) => sum + rows, 0);
}

test('an audit of an hour reads its events, and none of closed months, however many these have', async () => {
  await storeEvents('2026-11-03 12:10:00', 700);
  await storeEvents('2026-11-03 13:10:00', 50);
  const before = await rowsRead();
  for (const month of ['08', '09', '10']) await storeEvents(`2026-${month}-03 12:10:00`, 20_000);
  expect(await rowsRead()).toBe(before);

  await using folder = await makeTempDir();
  const slices = new Slices(folder.path, 'stored', STORED_BYTES, [0, 0]);
  const workspaces = new Workspaces([]);
  await readStoredEvents(new Database(db.writerClient), SELECTION, HOUR, { slices, count: 2, workspaces });
  const read = [0, 1].flatMap((index) => {
    const bytes = slices.read(index);
    return Array.from({ length: bytes.length / STORED_BYTES }, (_, row) => readUuid(bytes, row * STORED_BYTES));
  });
  slices.close();
  expect(read).toHaveLength(700);
  const stored = await db.client.query({
    query:
      "SELECT toString(uuid) AS uuid FROM events WHERE received_at >= '2026-11-03 12:00:00' AND received_at < '2026-11-03 13:00:00'",
    format: 'JSONEachRow',
  });
  const uuids = (await stored.json<{ uuid: string }>()).map(({ uuid }) => uuid);
  expect(read.sort()).toEqual(uuids.sort());
  expect(workspaces.names).toEqual(['w']);
});

import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readAudits, readBackupAge, readPendingErasures, readServerState } from './clickhouse-readings.ts';
import { batchOf, changeRow, createTestStore, eventRow, NOON, type TestStore } from './testing/store.ts';

const { signal } = new AbortController();
const DAY_MS = 86_400_000;

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'), createDatabase);
});
afterAll(() => db.close());

async function stateOf(table: string) {
  return (await readServerState(db.client, signal)).tables.find((one) => one.table === table);
}

async function run(query: string): Promise<void> {
  await db.client.command({ query });
}

test('the disks are those of the server', async () => {
  const { disks } = await readServerState(db.client, signal);
  const expected = await db.read<{ name: string; total_space: number }>('SELECT name, total_space FROM system.disks');
  expect(disks.map(({ disk, totalBytes }) => ({ name: disk, total_space: totalBytes }))).toEqual(expected);
  for (const { freeBytes, totalBytes } of disks) {
    expect(freeBytes).toBeGreaterThan(0);
    expect(freeBytes).toBeLessThan(totalBytes);
  }
});

test('the parts of a table are those of its fullest partition, and the limit is its own or that of the server', async () => {
  await run('SYSTEM STOP MERGES events');
  for (const days of [0, 0, 0, 40, 40]) await db.store(batchOf([eventRow({ timestamp: NOON - days * DAY_MS })]));
  const [server] = await db.read<{ value: string }>(
    "SELECT value FROM system.merge_tree_settings WHERE name = 'parts_to_throw_insert'",
  );
  expect(await stateOf('events')).toEqual({
    table: 'events',
    parts: 3,
    partsLimit: Number(server?.value),
    pendingMutations: 0,
  });
  await run('ALTER TABLE events MODIFY SETTING parts_to_throw_insert = 77');
  expect(await stateOf('events')).toMatchObject({ partsLimit: 77 });
  // Without rows it has no parts, and is there all the same.
  expect(await stateOf('dead_letters')).toMatchObject({ parts: 0, pendingMutations: 0 });
});

test('a mutation is pending until it is done', async () => {
  await db.store(batchOf([eventRow()]));
  await run('SYSTEM STOP MERGES events');
  await db.client.command({
    query: "ALTER TABLE events DELETE WHERE event = 'none'",
    clickhouse_settings: { mutations_sync: '0' },
  });
  expect(await stateOf('events')).toMatchObject({ pendingMutations: 1 });
  await run('SYSTEM START MERGES events');
  await eventually(() => stateOf('events')).toMatchObject({ pendingMutations: 0 });
});

test('a pending erasure counts each user once, from their last deletion', async () => {
  expect(await readPendingErasures(db.client, signal)).toEqual({ users: 0, oldestSeconds: 0 });
  const insert = (user: string, secondsAgo: number) =>
    run(`INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at)
      VALUES ('test', '${user}', ${NOON}, now64(3) - toIntervalSecond(${secondsAgo}))`);
  await insert('twice', 9_000);
  await insert('twice', 1_000);
  await insert('once', 5_000);
  const { users, oldestSeconds } = await readPendingErasures(db.client, signal);
  expect(users).toBe(2);
  expect(oldestSeconds).toBeGreaterThanOrEqual(5_000);
  expect(oldestSeconds).toBeLessThan(9_000);
  await db.store(batchOf([], [changeRow({ id: randomUUID(), operation: 'delete' })]));
  expect(await readPendingErasures(db.client, signal)).toMatchObject({ users: 3 });
});

test('the age of the last backup is that of the newest complete one, or of the database', async () => {
  await run(`INSERT INTO schema_migrations (number, name, checksum, applied_at)
    SELECT number, name, checksum, now() - 500000 FROM schema_migrations FINAL LIMIT 1`);
  const insert = (secondsAgo: number, isComplete: boolean) =>
    run(`INSERT INTO backups (id, started_at, finished_at)
      SELECT generateUUIDv4(), now64(6) - ${secondsAgo}, if(${isComplete}, now64(6), NULL)`);
  expect(await readBackupAge(db.client, signal)).toBeGreaterThanOrEqual(500_000);
  await insert(100, false);
  expect(await readBackupAge(db.client, signal)).toBeGreaterThanOrEqual(500_000);
  await insert(90_000, true);
  await insert(300_000, true);
  const age = await readBackupAge(db.client, signal);
  expect(age).toBeGreaterThanOrEqual(90_000);
  expect(age).toBeLessThan(300_000);
});

const HOUR_MS = 3_600_000;
/** Whole hours, as audits have them. */
const hoursAgo = (hours: number) => Math.floor(Date.now() / HOUR_MS - hours) * 3_600;

test('of audits the newest one of each hour counts, and of those of everything the one that reaches furthest', async () => {
  const none = { differences: undefined, balancedSeconds: undefined };
  expect(await readAudits(db.client, signal)).toEqual(none);
  let audits = 0;
  const audit = async (hours: readonly object[], values: object = {}) => {
    audits += 1;
    // In microseconds.
    const finished = (Date.now() + audits) * 1_000;
    const id = randomUUID();
    const insert = (table: string, rows: readonly object[]) =>
      db.client.insert({ table, values: rows, format: 'JSONEachRow' });
    await insert('audits', [
      { id, started_at: finished, finished_at: finished, until: hoursAgo(1), shares: 1, ...values },
    ]);
    await insert(
      'audited_hours',
      hours.map((hour) => ({ workspace_id: 'a', kind: 'events', audit_id: id, audited_at: finished, ...hour })),
    );
  };
  const [recent, longAgo] = [hoursAgo(5), hoursAgo(24 * 31)];
  await audit([], { finished_at: null });
  await audit([], { shares: 8, missing: 1 });
  expect(await readAudits(db.client, signal)).toEqual(none);

  await audit([{ hour: recent, missing: 3 }], { workspace_id: 'a' });
  const differences = { missing: 3, invented: 0, duplicates: 0 };
  expect(await readAudits(db.client, signal)).toEqual({ differences, balancedSeconds: undefined });

  await audit(
    [
      { hour: recent, missing: 5, invented: 2 },
      { hour: recent, kind: 'changes', missing: 1 },
      { hour: recent, workspace_id: 'b', duplicates: 4 },
      { hour: longAgo, missing: 70 },
    ],
    { balanced_through: recent },
  );
  const found = { differences: { missing: 6, invented: 2, duplicates: 4 }, balancedSeconds: recent };
  expect(await readAudits(db.client, signal)).toEqual(found);

  // An audit of hours before does not say that later ones are no longer in order.
  await audit([{ hour: hoursAgo(50) }], { until: hoursAgo(40), balanced_through: hoursAgo(40) });
  expect(await readAudits(db.client, signal)).toEqual(found);

  await audit([{ hour: recent }, { hour: recent, kind: 'changes' }, { hour: recent, workspace_id: 'b' }], {
    balanced_through: hoursAgo(1),
  });
  expect(await readAudits(db.client, signal)).toEqual({
    differences: { missing: 0, invented: 0, duplicates: 0 },
    balancedSeconds: hoursAgo(1),
  });
});

test('a query is given up with its signal', async () => {
  const aborted = new AbortController();
  const reading = readServerState(db.client, aborted.signal);
  aborted.abort();
  await expect(Promise.race([reading, wait(60_000)])).rejects.toThrow(/abort/i);
});

import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { createTestClients, type TestClients } from '../testing/clients.ts';
import { GroupMismatch } from './claim-database.ts';
import { DatabaseFilling, DatabaseMismatch, type DatabaseOwner, OwnDatabase } from './own-database.ts';

let db: TestClients;

beforeEach(async () => {
  db = await createTestClients(inject('clickhouseUrl'));
});
afterEach(() => db.close());

const UNNAMED: DatabaseOwner = { group: 'g', server: '', partitions: 'all' };

/** Starts a writer on the database. */
async function claimed(owner: Partial<DatabaseOwner> = {}): Promise<OwnDatabase> {
  const database = new OwnDatabase(db.writerClient, { ...UNNAMED, ...owner });
  await database.claim();
  return database;
}

const newest = () =>
  db.read('SELECT server, group_id, partitions, state FROM database_identity ORDER BY recorded_at DESC LIMIT 1');

test('all writers of a database have its id, also those that start together', async () => {
  const together = await Promise.all(Array.from({ length: 4 }, () => claimed()));
  const later = await claimed();
  for (const one of together) {
    expect(one.isOwn(one.id)).toBe(true);
    expect(later.isOwn(one.id)).toBe(true);
  }
  expect(later.isOwn('another')).toBe(false);
  expect(await newest()).toEqual([{ server: '', group_id: 'g', partitions: 'all', state: 'complete' }]);
});

test('a database that was there before the file of servers is named by it, and has its id as before', async () => {
  const before = await claimed();
  const named = await claimed({ server: 'a1' });
  expect(named.id).toBe(before.id);
  expect(await newest()).toMatchObject([{ server: 'a1' }]);
  // A writer without the file goes on, such as an older one.
  expect((await claimed()).id).toBe(before.id);
  expect(await newest()).toMatchObject([{ server: 'a1' }]);
});

test('a writer of another server, group or range is refused, and both are named', async () => {
  await claimed({ server: 'a1', partitions: '0-23' });
  const refused = async (owner: Partial<DatabaseOwner>) =>
    await claimed({ partitions: '0-23', ...owner }).catch(String);
  expect(await refused({ server: 'a2' })).toMatch(/DatabaseMismatch: .*server a1, and CLICKHOUSE_SERVER is a2/);
  expect(await refused({ server: 'a1', partitions: '0-47' })).toMatch(
    /partitions 0-23, and its writer is to store 0-47/,
  );
  await expect(claimed({ server: 'a1', partitions: 'all' })).rejects.toThrow(DatabaseMismatch);
  await expect(claimed({ server: 'a1', group: 'h' })).rejects.toThrow(GroupMismatch);
  await claimed({ server: 'a1', partitions: '0-23' });
});

test('a database whose tables were made anew has another id', async () => {
  const before = await claimed();
  await db.client.command({ query: 'TRUNCATE TABLE database_identity' });
  const anew = await claimed();
  expect(anew.isOwn(before.id)).toBe(false);
  await before.claim();
  expect(before.id).toBe(anew.id);
});

test('a database that is being filled is refused until that is done', async () => {
  const database = await claimed({ server: 'a2' });
  const record = (state: string) =>
    db.client.command({
      query: `INSERT INTO database_identity
        SELECT id, server, group_id, partitions, {state:String}, '', recorded_at + toIntervalSecond(1)
        FROM database_identity ORDER BY recorded_at DESC LIMIT 1`,
      query_params: { state },
    });
  const server = await database.claim();
  await database.requireFilled(server);
  await record('filling');
  await expect(database.requireFilled(server)).rejects.toThrow(DatabaseFilling);
  await database.claim();
  await record('incomplete');
  await database.requireFilled(server);
  await expect(database.requireFilled(randomUUID())).rejects.toThrow('another server answers');
});

test('of replicas, each is claimed: what is recorded at another one keeps the writer out, and two addresses of one server do', async () => {
  const other = await createTestClients(inject('clickhouseUrl'));
  try {
    const database = new OwnDatabase(db.writerClient, UNNAMED, [other.writerClient]);
    // Both databases are on one server.
    await expect(database.claim()).rejects.toThrow(/lead to the same server .*give each replica its own/);
    expect(database.others).toEqual([{ client: other.writerClient, server: expect.any(String) }]);
    for (const { read } of [db, other]) {
      const [identity] = await read<{ id: string }>('SELECT toString(id) AS id FROM database_identity');
      expect(database.isOwn(identity?.id ?? '')).toBe(true);
    }
    await other.client.command({ query: "INSERT INTO writer_groups (group_id) VALUES ('another')" });
    await expect(database.claim()).rejects.toThrow(GroupMismatch);
  } finally {
    await other.close();
  }
});

import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { Fenced } from '../protocol/epoch.ts';
import { createTestClients, type TestClients } from '../testing/clients.ts';
import { Ownership } from './ownership.ts';

let db: TestClients;

beforeAll(async () => {
  db = await createTestClients(inject('clickhouseUrl'));
});
afterAll(() => db.close());

function memberOf(generation: number, memberId: string, leaderId = 'leader') {
  return { generation, memberId, leaderId };
}

test('a member of an older generation is fenced, unless Kafka counts it to the group now', async () => {
  const groupId = 'counted anew';
  const ownershipOf = (isMember: boolean) =>
    new Ownership({ client: db.writerClient, groupId, writerId: 'w', isMember: async () => isMember });
  await ownershipOf(true).begin(memberOf(7, 'm'), '');
  await expect(ownershipOf(false).begin(memberOf(6, 'm'), '')).rejects.toThrow(Fenced);
  expect(await ownershipOf(true).begin(memberOf(1, 'm'), '')).toEqual({ incarnation: 2, generation: 1, server: '' });
});

test('a take-over whose assignment has ended meanwhile records nothing', async () => {
  const groupId = 'ended';
  const ending = new AbortController();
  const ownership = new Ownership({
    ...{ client: db.writerClient, groupId, writerId: 'w' },
    async isMember() {
      ending.abort(new Fenced('the group is rebalancing'));
      return true;
    },
  });
  await ownership.begin(memberOf(2, 'm'), '');
  // isMember is asked, because the generation is passed.
  await expect(ownership.begin({ ...memberOf(1, 'm'), signal: ending.signal }, '')).rejects.toThrow(Fenced);
  expect(await ownership.begin(memberOf(2, 'm'), '')).toEqual({ incarnation: 1, generation: 2, server: '' });
});

test('a generation that Kafka has counted anew does not share the epoch of the one that had its number', async () => {
  const groupId = 'lost';
  const members = new Set(['old']);
  const ownership = new Ownership({
    ...{ client: db.writerClient, groupId, writerId: 'w' },
    isMember: async (memberId) => members.has(memberId),
  });
  expect(await ownership.begin(memberOf(1, 'old', 'old'), '')).toEqual({ incarnation: 1, generation: 1, server: '' });
  // Kafka has lost the group, and the first generation of the new one is number 1 again.
  members.clear();
  members.add('young');
  expect(await ownership.begin(memberOf(1, 'young', 'young'), '')).toEqual({
    incarnation: 2,
    generation: 1,
    server: '',
  });
  await expect(ownership.begin(memberOf(1, 'old', 'old'), '')).rejects.toThrow(Fenced);
});

test('of two generations of one number that record the same epoch at the same time, at least one begins another', async () => {
  const groupId = 'lost at the same time';
  const both = Promise.withResolvers<void>();
  let reads = 0;
  // Both have read what is recorded before either of them records.
  const client = new Proxy(db.writerClient, {
    get(target, name) {
      if (name !== 'query') return Reflect.get(target, name);
      return async (query: Parameters<typeof target.query>[0]) => {
        const result = await target.query(query);
        reads += 1;
        if (reads === 2) both.resolve();
        await both.promise;
        return result;
      };
    },
  });
  const ownership = new Ownership({
    client,
    groupId,
    writerId: 'w',
    isMember: async (memberId) => memberId === 'young',
  });
  const begun = await Promise.allSettled([
    ownership.begin(memberOf(1, 'old', 'old'), ''),
    ownership.begin(memberOf(1, 'young', 'young'), ''),
  ]);
  expect(begun.some(({ status }) => status === 'rejected')).toBe(true);
  expect(await ownership.begin(memberOf(1, 'young', 'young'), '')).toEqual({
    incarnation: 2,
    generation: 1,
    server: '',
  });
  await expect(ownership.begin(memberOf(1, 'old', 'old'), '')).rejects.toThrow(Fenced);
});

test("the take-over of a newer generation ends an older generation's insert", async () => {
  const ownershipOf = (writerId: string) =>
    new Ownership({ client: db.writerClient, groupId: 'taken over', writerId, isMember: async () => false });
  const [old, young] = [ownershipOf('old'), ownershipOf('young')];
  const oldEpoch = await old.begin(memberOf(10, 'old'), '');
  const query_id = `${old.queryIdPrefix(oldEpoch)}/slow`;
  const slow = db.writerClient
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
  await eventually(running).toBe(1);
  await young.begin(memberOf(11, 'young'), '');
  expect(await running()).toBe(0);
  expect(await slow).toBe('killed');
});

test('of replicas, each gets the epoch, and the newest one of any of them counts', async () => {
  const other = await createTestClients(inject('clickhouseUrl'));
  try {
    const groupId = 'at replicas';
    const joined = { groupId, writerId: 'w', isMember: async () => false };
    const own = new Ownership({ ...joined, client: db.writerClient });
    const others = [{ client: other.writerClient, server: '' }];
    expect(await own.begin(memberOf(5, 'm'), '', others)).toMatchObject({ generation: 5 });
    for (const { read } of [db, other]) {
      const query = `SELECT generation FROM writer_epochs WHERE group_id = '${groupId}'`;
      expect(await read(query)).toEqual([{ generation: 5 }]);
    }
    await new Ownership({ ...joined, client: other.writerClient }).begin(memberOf(6, 'm'), '');
    await expect(own.begin(memberOf(5, 'm'), '', others)).rejects.toThrow(Fenced);
  } finally {
    await other.close();
  }
});

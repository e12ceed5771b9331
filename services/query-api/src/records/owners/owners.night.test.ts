import { setTimeout as wait } from 'node:timers/promises';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { entityHash, eventHash } from '@sluice/shared/rows/row-hashes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  ask,
  comparable,
  OWNER_TABLES,
  type OwnersWorld,
  ownerQuestions,
  ownersWorld,
  putSegments,
} from '../../testing/owners.ts';
import {
  anEvent,
  DELETIONS_FORGOTTEN_MS,
  type QueryService,
  startQuery,
  type TestEvent,
} from '../../testing/query-service.ts';
import { type Shards, startShards } from '../../testing/shards.ts';

const PARTITIONS = 48;
const OF_A = { first: 0, last: 31 };
const OF_B = { first: 32, last: PARTITIONS - 1 };

/** One server with all rows. */
let single: QueryService;
/** Two ranges with the same rows; one of them has two mirrors. */
let sharded: Shards;
let world: OwnersWorld;

beforeAll(async () => {
  sharded = await startShards({ a1: OF_A, b1: OF_B, b2: OF_B }, {}, WEBHOOKS_ACCOUNT);
  single = await startQuery(String(sharded.shards[0]?.url), WEBHOOKS_ACCOUNT);
  world = ownersWorld(200);
  await store('a', world.events);
  await store('b', world.reference);
  for (const table of OWNER_TABLES) await storeRows(table);
  for (const service of [single, sharded]) await putSegments(service, 'a');
  await wait(DELETIONS_FORGOTTEN_MS);
});
afterAll(async () => {
  await single?.stop();
  await sharded?.stop();
});

/** Whether a server of a range has what has a hash. */
function has({ first, last }: typeof OF_A, hash: number): boolean {
  return hash % PARTITIONS >= first && hash % PARTITIONS <= last;
}

async function store(workspace: string, events: readonly TestEvent[]): Promise<void> {
  await single.store(workspace, events);
  for (const shard of sharded.shards) {
    await shard.store(
      workspace,
      events.filter(({ uuid }) => has(shard.partitions, eventHash(uuid))),
    );
  }
}

async function storeRows(table: (typeof OWNER_TABLES)[number]): Promise<void> {
  const rows = world.rows.filter((row) => row.table === table);
  const ofWorkspace = (some: typeof rows) => some.map(({ row }) => ({ workspace_id: 'a', ...row }));
  const half = Math.ceil(rows.length / 2);
  for (const some of [rows.slice(0, half), rows.slice(half)]) {
    await single.insert(table, ofWorkspace(some));
    for (const shard of sharded.shards) {
      // Each server has all deletions.
      const isOn = ({ kind, id }: (typeof rows)[number]) =>
        table.endsWith('deletions') || has(shard.partitions, entityHash('a', kind, id));
      await shard.insert(table, ofWorkspace(some.filter(isOn)));
    }
  }
}

test('users who are more than a series may have cells are filtered and grouped by', async () => {
  const users = 250_000;
  await single.clickHouse.command({
    query: `INSERT INTO entity_properties (workspace_id, kind, id, property, register)
      SELECT 'c', 'user', toString(number), 'plan', (1, generateUUIDv4(), 'set', if(number % 2 = 0, '"pro"', '"free"'))
      FROM numbers({users:UInt64})`,
    query_params: { users },
  });
  await single.store('c', [anEvent({ userId: '0' }), anEvent({ userId: '1' }), anEvent()]);
  const series = '/events/series?interval=none&startDate=2026-03-01&endDate=2026-03-01';
  const { body } = await single.get(`${series}&groupBy=user.properties.plan&user.properties.plan[ne]=free`, 'c');
  expect(body).toMatchObject({
    series: [
      { group: [null], total: 1 },
      { group: ['pro'], total: 1 },
    ],
    total: 2,
  });
});

test('300 random questions are answered as those about events that hold all of it, by one server and by two ranges', async () => {
  for (const { asked, expected } of ownerQuestions(300)) {
    const reference = await ask(single, expected, 'b');
    for (const service of [single, sharded]) {
      const answer = await ask(service, asked, 'a');
      expect(answer.status, `${asked} ${answer.text}`).toBe(200);
      expect(comparable(answer), asked).toEqual(comparable(reference));
    }
  }
});

test.each(['one server', 'two ranges'])(
  'the list of those in a segment has all of them in each order, and as many as it says (%s)',
  async (servers) => {
    const query = servers === 'one server' ? single : sharded;
    for (const [name, members] of Object.entries(world.members)) {
      const { body } = await query.get(`/segments/${name}`);
      const { of, count } = body as unknown as { of: 'users' | 'organizations'; count: number };
      expect([name, count]).toEqual([name, members.length]);
      const idName = of === 'users' ? 'foreignId' : 'foreignUserGroupId';
      const idsIn = async (parameters: string) =>
        (await query.get(`/${of}?${parameters}`)).body.results.map((one) => one[idName] as string);
      for (const order of ['id', 'firstSeenAt', 'lastSeenAt']) {
        const listed = await idsIn(`segment=${name}&orderByField=${order}`);
        expect(listed.toSorted(), `${name} by ${order}`).toEqual(members.toSorted());
        const others = await idsIn(`segment[ne]=${name}&orderByField=${order}`);
        expect([...listed, ...others].toSorted()).toEqual((await idsIn(`orderByField=${order}`)).toSorted());
      }
      expect(await idsIn(`segment=${name}`)).toEqual(members);
      const pro = new Set(await idsIn('properties.plan=pro'));
      expect(await idsIn(`segment=${name}&properties.plan=pro`)).toEqual(members.filter((id) => pro.has(id)));
    }
  },
);

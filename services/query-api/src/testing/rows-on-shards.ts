import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import { entityHash, eventHash } from '@sluice/shared/rows/row-hashes';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { anEvent, aRegister, type QueryService, startQuery, type TestEvent } from './query-service.ts';
import { type Shard, type Shards, startShards } from './shards.ts';
import { listenTo, type TestStreams } from './streams.ts';

/** A row is on the server that has its partition. */
const PARTITIONS = 48;
const OF_A = { first: 0, last: 31 };
const OF_B = { first: 32, last: PARTITIONS - 1 };

/** Settings of the account that would lose rows or refuse queries. */
const CONTRARY_SETTINGS = {
  skip_unavailable_shards: '1',
  distributed_group_by_no_merge: '1',
  force_optimize_skip_unused_shards: '2',
};

/** The workspace whose events of the first days have expired. */
export const EXPIRING = 'e';
export const KEPT_FROM_MS = Date.UTC(2026, 2, 1);
export const USERS = ['ada', 'bob', 'cem', 'dee', 'eve', 'fay', "o'\0h"];
export const VISITORS = ['v1', 'v2', 'v3', 'v4', 'v5', 'v6'];
/** Users whose deletion is pending. */
const HIDDEN = ['ada', 'bob', 'dee'];
export const START_MS = Date.UTC(2026, 1, 27);
export const DAY_MS = 86_400_000;
/** In how many inserts each server gets what it has of users and organizations. */
const PARTS = 6;

/** One server with all rows. */
export let single: QueryService;
/** Servers with two ranges, which share the same rows; one range has two mirrors. */
export let sharded: Shards;
/** Those of each range. */
export let ranges: readonly (readonly Shard[])[];
export let streams: TestStreams;

/**
 * Before the tests of the file, starts servers of two ranges, and one beside them with the same rows. For the tests, seven days
 * have passed since {@link KEPT_FROM_MS}.
 *
 * @param mirrors whether the second range has two servers
 * @param workspaces which have events, users and organizations
 */
export function prepareShards(mirrors: 'one server each' | 'with mirrors', workspaces: readonly string[]): void {
  beforeAll(async () => {
    const servers = { a1: OF_A, b1: OF_B, ...(mirrors === 'with mirrors' && { b2: OF_B }) };
    sharded = await startShards(servers, CONTRARY_SETTINGS);
    ranges = [OF_A, OF_B].map((range) => sharded.shards.filter(({ partitions }) => partitions.first === range.first));
    single = await startQuery(String(sharded.shards[0]?.url));
    streams = await listenTo(sharded);
    for (const workspace of workspaces) await storeEverything(workspace);
    // The lag of servers is measured by another clock.
    vi.useFakeTimers({ toFake: ['Date'], now: KEPT_FROM_MS + 7 * DAY_MS });
    for (const each of everywhere()) await each.insert('retention', [{ workspace_id: EXPIRING, days: 7 }]);
  });
  afterAll(async () => {
    vi.useRealTimers();
    await single?.stop();
    await sharded?.stop();
  });
}

function everywhere(): readonly Pick<QueryService, 'insert'>[] {
  return [single, ...sharded.shards];
}

/** Returns the mirrors that have a row. */
export function mirrorsOf(hash: number): readonly Shard[] {
  return (hash % PARTITIONS <= OF_A.last ? ranges[0] : ranges[1]) ?? [];
}

export async function storeEvents(workspace: string, events: readonly TestEvent[]): Promise<void> {
  await single.store(workspace, events);
  for (const [mirrors, share] of Map.groupBy(events, ({ uuid }) => mirrorsOf(eventHash(uuid)))) {
    expect(share.length).toBeGreaterThan(0);
    for (const shard of mirrors) await shard.store(workspace, share);
  }
}

type Row = Readonly<Record<string, unknown>>;

/** Stores rows about users and organizations on the server of each. */
async function storeOfEntities(table: string, rows: readonly Row[]): Promise<void> {
  await single.insert(table, rows);
  const byShard = Map.groupBy(rows, ({ workspace_id, kind = 'user', id, user_id }) =>
    mirrorsOf(entityHash(String(workspace_id), String(kind), String(id ?? user_id))),
  );
  expect(byShard.size).toBe(2);
  for (const [mirrors, share] of byShard) for (const shard of mirrors) await shard.insert(table, share);
}

function pick<Item>(items: readonly Item[], index: number): Item {
  return items[index % items.length] as Item;
}

export function someEvents(count: number): TestEvent[] {
  return sample(fc.uuid(), count).map((uuid, index) =>
    anEvent({
      uuid,
      // Few timestamps, so that cursors go through equal ones; over the end of a month.
      timestampMs: START_MS + (index % 5) * DAY_MS,
      receivedAtUs: (START_MS + 6 * DAY_MS) * 1_000 + (index % 9) * 500,
      event: pick(['opened', 'Closed', 'öffnet'], index),
      userId: pick(['', ...USERS], index * 7),
      groupId: pick(['', 'acme', 'bolt'], index),
      anonymousId: pick(['', ...VISITORS], index * 3),
      properties: pick(['{}', '{"plan":"pro","n":1}', '{"plan":"free","n":2}'], index * 5),
    }),
  );
}

/** Events, users with properties, deletions of which some are erased, and users who came back after theirs. */
async function storeEverything(workspace: string): Promise<void> {
  const events = someEvents(150);
  const of = { workspace_id: workspace };
  const deletedAt = (START_MS + 6 * DAY_MS) * 1_000 + 2_000;
  const erased = events.filter(({ userId, receivedAtUs }) => userId === 'fay' && receivedAtUs <= deletedAt);
  await storeEvents(
    workspace,
    events.filter((event) => !erased.includes(event)),
  );
  const deletionsOf = (users: readonly string[]) =>
    users.map((user_id) => ({ ...of, user_id, version: deletedAt, stored_at: 1 }));
  for (const each of everywhere()) {
    await each.insert(
      'user_deletions',
      deletionsOf([...HIDDEN, 'fay']).map(({ stored_at: _, ...row }) => row),
    );
    await each.insert('pending_deletions', deletionsOf(HIDDEN));
  }

  const kinds = ['user', 'organization'] as const;
  const entities = kinds.flatMap((kind) =>
    [...USERS, 'acme', 'bolt', 'ida', 'joe'].map((id, index) => ({
      kind,
      id,
      version: deletedAt + (index % 3) * 400 - 400,
    })),
  );
  const ofServers = new Map(everywhere().map((each): [Pick<QueryService, 'insert'>, Row[]] => [each, []]));
  const add = (each: Pick<QueryService, 'insert'>, ...rows: readonly Row[]) => ofServers.get(each)?.push(...rows);
  // Events of a user are on all servers, and each of them has a row of the user. After a split, each has all of it.
  for (const [index, { version, ...entity }] of entities.entries()) {
    const [first, last] = [START_MS + index, START_MS + DAY_MS];
    const row = (from: number, to: number, newest: number) => ({
      ...{ ...of, ...entity, first_seen_at: from, last_seen_at: to, version: newest },
    });
    add(single, row(first, last, version));
    if (index % 3 === 0) {
      for (const each of sharded.shards) add(each, row(first, last, version));
      continue;
    }
    const [some = [], others = []] = index % 2 === 0 ? ranges : ranges.toReversed();
    for (const each of some) add(each, row(first, first, version));
    for (const each of others) add(each, row(last, last, version - 500));
  }
  await storeOfEntities(
    'user_sightings',
    entities.filter(({ kind }) => kind === 'user').map(({ id, version }) => ({ ...of, user_id: id, version })),
  );
  const together = events.filter(({ userId, groupId }) => userId !== '' && groupId !== '');
  for (const [index, { uuid, userId, groupId, timestampMs, receivedAtUs }] of together.entries()) {
    const seen = { ...of, first_seen_at: timestampMs, last_seen_at: timestampMs, version: receivedAtUs };
    const rows = [
      { ...seen, kind: 'membership', id: userId, other_id: groupId },
      { ...seen, kind: 'member', id: groupId, other_id: userId },
    ];
    const servers = index % 3 === 0 ? sharded.shards : mirrorsOf(eventHash(uuid));
    for (const each of [single, ...servers]) add(each, ...rows);
  }
  for (const [each, rows] of ofServers) {
    // Rows of one user or organization are in several parts.
    const size = Math.ceil(rows.length / PARTS);
    for (let from = 0; from < rows.length; from += size) await each.insert('entities', rows.slice(from, from + size));
  }
  const registers = entities.flatMap(({ version, ...entity }, index) =>
    ['plan', 'n', 'gone'].map((property) => ({
      ...of,
      ...entity,
      property,
      register: aRegister(version, property === 'gone' ? 'remove' : 'set', pick(['"pro"', '"free"', '1'], index)),
    })),
  );
  await storeOfEntities('entity_properties', registers);
  await storeLinks(workspace, deletedAt);
}

/** Stores facts about visitors, and users who became others, on the server of each; some users are deleted, and some came back. */
async function storeLinks(workspace: string, deletedAt: number): Promise<void> {
  const ofVisitors = VISITORS.flatMap((anonymous_id, index) =>
    [0, 1].map((place) => ({
      ...{
        workspace_id: workspace,
        anonymous_id,
        user_id: pick(USERS, index * 2 + place),
        said: index === 4 ? place : 0,
      },
      version: deletedAt - 500 + 700 * place + index,
    })),
  );
  const merges = USERS.slice(2).flatMap((user, index) => {
    const [anonymous_id, version] = [mergeKeyOf(user), deletedAt - 1_000 + 1_500 * index];
    return index % 2 === 0
      ? [{ workspace_id: workspace, anonymous_id, user_id: pick(USERS, index), said: 1, version }]
      : [];
  });
  const facts = [...ofVisitors, ...merges];
  await single.insert('identity_links', facts);
  const byShard = Map.groupBy(facts, ({ anonymous_id }) => mirrorsOf(entityHash(workspace, 'visitor', anonymous_id)));
  expect(byShard.size).toBe(2);
  for (const [mirrors, share] of byShard) for (const shard of mirrors) await shard.insert('identity_links', share);
}

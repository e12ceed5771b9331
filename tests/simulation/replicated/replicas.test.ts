import { createLogger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import { chooseReplica, Replicas, ReplicaWatch } from '@sluice/storage/clickhouse/replicas';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { Erasure } from '@sluice/writer/erasure/erasure';
import { LinkedVisitors } from '@sluice/writer/erasure/linked-visitors';
import { STATEMENTS as ERASURE_STATEMENTS } from '@sluice/writer/erasure/statements';
import type { Kafka } from 'kafkajs';
import { describe, expect, test } from 'vitest';
import { createSimulatedClient } from '../clickhouse/simulated-client.ts';
import { createTables, type Tables } from '../clickhouse/tables.ts';
import type { LinkFact } from '../clickhouse/visitor-owner.ts';
import { driven } from '../contracts/driven.ts';
import { placedReplicas } from '../contracts/replica-engines.ts';
import type { VirtualTime } from '../world/virtual-time.ts';

const REQUEST_TIMEOUT_MS = 60_000;

function threeReplicas() {
  const { time, network, keeper, replicas } = placedReplicas(1, ['one', 'two', 'three']);
  const clients = replicas.map(({ clickhouse }) => createSimulatedClient(clickhouse, network, REQUEST_TIMEOUT_MS));
  const [replicaOf, serverOf] = [replicas.map(({ replica }) => replica), replicas.map(({ clickhouse }) => clickhouse)];
  return { time, keeper, replicas: replicaOf, servers: serverOf, clients };
}

/** Runs work whose clock is that of simulated replicas. */
async function onTheirClock<Result>(time: VirtualTime, work: () => Promise<Result>): Promise<Result> {
  const uninstall = time.install();
  try {
    return await driven(time, work);
  } finally {
    uninstall();
  }
}

const NEVER = new AbortController().signal;

/** Stores rows at the first of three replicas, whose part the last one does not fetch. Returns what ends that. */
async function storeUnfetched(
  { time, keeper, replicas: [first, , last] }: ReturnType<typeof threeReplicas>,
  table: 'deletions' | 'identityDeletions' | 'pendingDeletions' | 'sightings',
): Promise<() => void> {
  if (!first || !last) throw new Error('there are three replicas');
  let number = -1;
  first.onNextPart = (entry) => {
    number = entry.number;
    keeper.held.set(number, [last]);
  };
  const row = { workspace: 'w', user: 'u', version: 1 };
  const all = {
    deletions: new Map([['w\0u', 1]]),
    identityDeletions: new Map([['w\0u\x001', { ...row, settledAtMs: 1 }]]),
    pendingDeletions: [{ ...row, storedAtMs: 1 }],
    sightings: [{ ...row, group: '' }],
  };
  const rows = { ...createTables(), [table]: all[table] };
  const runner = { pause: () => time.wait(1), wait: (ms: number) => time.wait(ms) };
  const settings = { quorum: 2, quorumTimeoutMs: 60_000, deduplicates: false };
  await driven(time, () => first.insert(table, rows, runner, settings));
  return () => keeper.held.delete(number);
}

function replicasOf([own, ...others]: ReturnType<typeof threeReplicas>['clients']): Replicas {
  if (!own) throw new Error('there is no replica');
  return new Replicas({ own, others, writerId: 'writer', groupPrefix: 'group/', statementTimeoutMs: 5_000 });
}

test('a replica that is far behind is chosen only where no other one can be stored at', async () => {
  const { time, replicas, clients } = threeReplicas();
  const choose = (chosen: number) => driven(time, () => chooseReplica(clients, chosen));
  const [one, two, three] = replicas;
  if (!one || !two || !three) throw new Error('there are three replicas');
  one.lagMs = 3_600_000;
  expect([await choose(0), await choose(2)]).toEqual([1, 2]);
  two.setSession(false);
  expect(await choose(0)).toBe(2);
  three.setSession(false);
  expect(await choose(1)).toBe(0);
});

test('a writer that does not know a replica takes nothing over, and settles nothing, until it is dropped', async () => {
  const { time, keeper, replicas, clients } = threeReplicas();
  const two = replicasOf(clients.slice(0, 2));
  const takeOver = () => driven(time, () => two.takeOver());
  const settle = () => driven(time, () => two.settle(0, new AbortController().signal));
  await driven(time, () => replicasOf(clients).takeOver());
  for (const work of [takeOver, settle]) await expect(work()).rejects.toThrow(/knows 3 replicas.*names 2/);
  const [lost] = replicas.slice(2);
  if (lost) keeper.drop(lost);
  for (const work of [takeOver, settle]) await work();
});

test('a replica that does not know a deletion yet keeps everything from being settled', async () => {
  for (const table of ['deletions', 'identityDeletions'] as const) {
    const three = threeReplicas();
    const release = await storeUnfetched(three, table);
    const settle = () => replicasOf(three.clients).settle(0, NEVER);
    await onTheirClock(three.time, async () => {
      await expect(settle(), table).rejects.toThrow('TIMEOUT_EXCEEDED');
      release();
      await settle();
    });
  }
});

test('deletions are settled when every batch has ended that may not know them, and none that was under way', async () => {
  const { time, servers, clients } = threeReplicas();
  const [last, server] = [clients[2], servers[2]];
  if (!last || !server) throw new Error('there are three replicas');
  const { sql: query } = STATEMENTS['record-progress'];
  /** Runs a statement of a batch for so long at the last replica. */
  const batch = async (ms: number) => {
    server.stallsNextMs = ms;
    const query_params = { throughMs: 1, newestBlock: 0 };
    await last.command({ query, query_id: `group/1.1/writer/${ms}`, query_params });
  };
  const replicas = replicasOf(clients);
  const settledAfterMs = async (delayMs: number) => {
    const beganAtMs = time.nowMs;
    await replicas.settle(delayMs, NEVER);
    return time.nowMs - beganAtMs;
  };
  // A batch may be between two of its statements.
  expect(await onTheirClock(time, () => settledAfterMs(3_000))).toBeGreaterThanOrEqual(3_000);
  const [, tookMs] = await onTheirClock(time, () => Promise.all([batch(8_000), settledAfterMs(10)]));
  expect(tookMs).toBeGreaterThanOrEqual(8_000);
  // One that has begun since then is not waited for.
  const later = () => Promise.all([settledAfterMs(3_000), time.wait(2_000).then(() => batch(4_000))]);
  expect((await onTheirClock(time, later))[0]).toBeLessThan(5_000);
  const endless = () => Promise.allSettled([settledAfterMs(10), batch(60_000)]);
  const [{ status, ...rest }] = await onTheirClock(time, endless);
  expect([status, String('reason' in rest && rest.reason)]).toEqual([
    'rejected',
    expect.stringContaining('has not ended'),
  ]);
});

test('a replica without a session of Keeper takes nothing over: it does not say how many others there are', async () => {
  const { time, replicas, clients } = threeReplicas();
  replicas[0]?.setSession(false);
  await expect(driven(time, () => replicasOf(clients).takeOver())).rejects.toThrow('has no session of Keeper');
});

test('whose visitors are is read once the own replica has everything of it', async () => {
  for (const table of ['deletions', 'identityDeletions', 'pendingDeletions'] as const) {
    const three = threeReplicas();
    const release = await storeUnfetched(three, table);
    const readLinks = () => driven(three.time, () => replicasOf(three.clients.toReversed()).readLinks());
    await expect(readLinks(), table).rejects.toThrow('TIMEOUT_EXCEEDED');
    release();
    await readLinks();
  }
});

/** Deletions of users as they are stored first, with what says that all before a time is stored. */
function unsettled(throughMs: number, ...deletions: readonly { readonly user: string; readonly version: number }[]) {
  const rows = deletions.map((deletion) => ({ workspace: 'w', settledAtMs: 0, ...deletion }));
  return {
    throughMs,
    identityDeletions: new Map(rows.map((row) => [['w', row.user, row.version].join('\0'), row])),
    pendingDeletions: rows.map(({ workspace, user, version }) => ({ workspace, user, version, storedAtMs: 1 })),
  };
}

/** Somebody says in a version that a user has become another one, whose deletion deletes the first one, too. */
const merged = (user: string, other: string, version: number): LinkFact => {
  return { workspace: 'w', visitor: mergeKeyOf(user), user: other, version, isSaid: true };
};

describe('the visitors of deleted users', () => {
  /** Three replicas, and a look for visitors by a writer at the last one, which cannot send anything. */
  function looking() {
    const three = threeReplicas();
    const { time, keeper, clients, replicas } = three;
    const [first, , own] = replicas;
    const [client, ...others] = clients.toReversed();
    if (!first || !own || !client) throw new Error('there are three replicas');
    const runner = { pause: () => time.wait(1), wait: (ms: number) => time.wait(ms) };
    const settings = { quorum: 2, quorumTimeoutMs: 60_000, deduplicates: false };
    /** Stores rows at the first replica, which the last one fetches, or does not. Returns what ends that. */
    const store = async (rows: Partial<Tables>, isHeld = false) => {
      const held: number[] = [];
      for (const table of Object.keys(rows) as (keyof Tables)[]) {
        first.onNextPart = ({ number }) => {
          if (isHeld) keeper.held.set(number, [own]);
          held.push(number);
        };
        await first.insert(table, { ...createTables(), [table]: rows[table] }, runner, settings);
      }
      if (!isHeld) await time.wait(1_000);
      return () => {
        for (const number of held) keeper.held.delete(number);
      };
    };
    const look = new LinkedVisitors(
      { ERASURE_INTERVAL_MS: 1_000, ERASURE_DELAY_MS: 0, KAFKA_PARTITIONS: 1, KAFKA_TOPIC_PREFIX: '' },
      {
        ...{ client, others, replicas: replicasOf([client, ...others]), writerId: 'writer', kafka: {} as Kafka },
        ...{ logger: createLogger('test', 'silent'), failures: { inc() {} } },
      },
    );
    look.setOwner(true);
    const settledOf = (user: string) =>
      [...first.tables.identityDeletions.values()].some((one) => one.user === user && one.settledAtMs > 0);
    return { time, store, look: () => look.takeRound(), settledOf };
  }

  test('are looked for once what links them is there', async () => {
    const { time, store, look, settledOf } = looking();
    await driven(time, async () => {
      await store(unsettled(10, { user: 'u', version: 5_000 }));
      const release = await store({ links: new Map([['1', merged('v', 'u', 4_000)]]) }, true);
      await expect(look()).rejects.toThrow('TIMEOUT_EXCEEDED');
      release();
      // It goes on as far as sending their deletions.
      await look().catch(() => undefined);
      expect(settledOf('u')).toBe(false);
    });
  });

  test('wait for those of earlier deletions, also of such that another replica has stored', async () => {
    const { time, store, look, settledOf } = looking();
    await driven(time, async () => {
      await store({
        ...unsettled(10, { user: 'later', version: 6_000 }),
        links: new Map([['1', merged('v', 'u', 4_000)]]),
      });
      const release = await store(unsettled(10, { user: 'u', version: 5_000 }), true);
      void time.wait(500).then(release);
      await look().catch(() => undefined);
      expect([settledOf('u'), settledOf('later')]).toEqual([false, false]);
    });
  });

  test('of a deletion that comes meanwhile are looked for later, once what links them is there', async () => {
    const { time, store, look, settledOf } = looking();
    await driven(time, async () => {
      await store(unsettled(10, { user: 'u', version: 5_000 }));
      const release = await store({ links: new Map([['1', merged('v', 'another', 4_000)]]) }, true);
      void time.wait(500).then(async () => {
        await store({ links: new Map([['2', merged('w', 'later', 15_000)]]) }, true);
        await store(unsettled(20, { user: 'later', version: 16_000 }));
        release();
      });
      await expect(look()).rejects.toThrow('TIMEOUT_EXCEEDED');
      expect([settledOf('u'), settledOf('later')]).toEqual([true, false]);
    });
  });
});

test('a writer leaves a replica that is read-only for long while another one is not, and stays otherwise', async () => {
  const { time, replicas, servers, clients } = threeReplicas();
  const [[first], [server], [own, ...others]] = [replicas, servers, clients];
  if (!first || !server || !own) throw new Error('there are three replicas');
  let ends = 0;
  const onStuck = () => {
    ends += 1;
  };
  const watch = new ReplicaWatch({ own, others, stuckMs: 5_000, onStuck });
  await onTheirClock(time, async () => {
    watch.start();
    for (let times = 0; times < 3; times += 1) {
      first.setSession(false);
      await sleep(4_000);
      first.setSession(true);
      await sleep(3_000);
    }
    expect(ends, 'for a moment, again and again').toBe(0);
    for (const one of replicas) one.setSession(false);
    await sleep(20_000);
    expect(ends, 'there is no other one').toBe(0);
    for (const one of replicas) one.setSession(true);
    await sleep(2_000);
    server.isUp = false;
    await sleep(20_000);
    expect(ends, 'it does not answer, so nobody takes anything over').toBe(0);
    server.isUp = true;
    await sleep(2_000);
    first.setSession(false);
    await sleep(3_000);
    expect(ends, 'not yet').toBe(0);
    await sleep(5_000);
    expect(ends).toBe(1);
    await watch.stop();
  });
});

/** Returns an erasure of a writer at the first of some replicas. */
function erasureAt(clients: readonly ClickHouseClient[]): Erasure {
  const [client, ...others] = clients;
  if (!client) throw new Error('there is no replica');
  const erasure = new Erasure(
    { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 1_000, ERASURE_GATHER_MS: 0 },
    {
      ...{ client, others, replicas: replicasOf([...clients]), writerId: 'writer' },
      ...{ logger: createLogger('test', 'silent'), failures: { inc() {} } },
    },
  );
  erasure.setOwner(true);
  return erasure;
}

/** Returns a client that calls back before each statement of a name. */
function calling(client: ClickHouseClient, sql: string, onCall: () => void): ClickHouseClient {
  return new Proxy(client, {
    get(target, name, receiver) {
      if (name !== 'query' && name !== 'command') return Reflect.get(target, name, receiver);
      return (call: Parameters<typeof target.query>[0]) => {
        if (call.query === sql) onCall();
        return target[name](call as never);
      };
    },
  });
}

test('however many deletions are due, they are settled at the replicas once, and later ones again', async () => {
  const { time, replicas, clients } = threeReplicas();
  const pending = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => {
      return { workspace: 'w', user: `user ${from + index}`, version: 1, storedAtMs: time.dateMs };
    });
  const runner = { pause: () => time.wait(1), wait: (ms: number) => time.wait(ms) };
  const settings = { quorum: 3, quorumTimeoutMs: 60_000, deduplicates: false };
  const insert = (table: 'pendingDeletions' | 'sightings', rows: Partial<Tables>) =>
    driven(time, async () => await replicas[0]?.insert(table, { ...createTables(), ...rows }, runner, settings));
  // The last one has a row, so that its deletion is looked at in each part of the round.
  await insert('pendingDeletions', { pendingDeletions: pending(0, 2_500) });
  await insert('sightings', { sightings: [{ workspace: 'w', group: '', user: 'user 2499', version: 1 }] });
  let looks = 0;
  const { sql } = STATEMENTS['find-longest-statement'];
  const counting = clients.map((client) =>
    calling(client, sql, () => {
      looks += 1;
    }),
  );
  const erasure = erasureAt(counting);
  for (let round = 0; round < 2; round += 1) await driven(time, () => erasure.takeRound());
  expect(replicas[0]?.tables).toMatchObject({ pendingDeletions: [], sightings: [] });
  expect(looks).toBe(3);
  await insert('pendingDeletions', { pendingDeletions: pending(2_500, 1) });
  await driven(time, () => erasure.takeRound());
  expect([replicas[0]?.tables.pendingDeletions, looks]).toEqual([[], 6]);
});

test('nothing is erased before the own replica has all that is stored of the users', async () => {
  const three = threeReplicas();
  const release = await storeUnfetched(three, 'sightings');
  (await storeUnfetched(three, 'pendingDeletions'))();
  const erasure = erasureAt(three.clients.toReversed());
  await expect(driven(three.time, () => erasure.takeRound())).rejects.toThrow('TIMEOUT_EXCEEDED');
  release();
  for (let round = 0; round < 2; round += 1) await driven(three.time, () => erasure.takeRound());
  for (const { tables } of three.replicas) expect(tables).toMatchObject({ pendingDeletions: [], sightings: [] });
});

test('a deletion is forgotten once no replica has rows of its user', async () => {
  const three = threeReplicas();
  for (const table of ['sightings', 'pendingDeletions'] as const) (await storeUnfetched(three, table))();
  const [own, last] = [three.clients[0], three.replicas[2]];
  if (!own || !last) throw new Error('there are three replicas');
  // It does not learn that the rows are to be removed.
  const { sql } = ERASURE_STATEMENTS['erase-sightings'];
  const erasure = erasureAt([calling(own, sql, () => last.setSession(false)), ...three.clients.slice(1)]);
  const left = () => three.replicas.map(({ tables }) => [tables.pendingDeletions.length, tables.sightings.length]);
  for (let round = 0; round < 3; round += 1) await driven(three.time, () => erasure.takeRound());
  expect(left()).toEqual([
    [1, 0],
    [1, 0],
    [1, 1],
  ]);
  last.setSession(true);
  for (let round = 0; round < 3; round += 1) await driven(three.time, () => erasure.takeRound());
  await driven(three.time, () => three.time.wait(1_000));
  expect(left()).toEqual(Array(3).fill([0, 0]));
});

import { createLogger } from '@sluice/shared/base/log';
import { chooseReplica, Replicas } from '@sluice/storage/clickhouse/replicas';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { Erasure } from '@sluice/writer/erasure/erasure';
import { expect, test } from 'vitest';
import { createSimulatedClient } from '../clickhouse/simulated-client.ts';
import { createTables } from '../clickhouse/tables.ts';
import { driven } from '../contracts/driven.ts';
import { placedReplicas } from '../contracts/replica-engines.ts';

const REQUEST_TIMEOUT_MS = 60_000;

function threeReplicas() {
  const { time, network, keeper, replicas } = placedReplicas(1, ['one', 'two', 'three']);
  const clients = replicas.map(({ clickhouse }) => createSimulatedClient(clickhouse, network, REQUEST_TIMEOUT_MS));
  return { time, keeper, replicas: replicas.map(({ replica }) => replica), clients };
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

test('however many deletions are due, they are settled at the replicas once', async () => {
  const { time, replicas, clients } = threeReplicas();
  const pendingDeletions = Array.from({ length: 2_500 }, (_, index) => {
    return { workspace: 'w', user: `user ${index}`, version: 1, storedAtMs: time.dateMs };
  });
  const runner = { pause: () => time.wait(1), wait: (ms: number) => time.wait(ms) };
  const settings = { quorum: 3, quorumTimeoutMs: 60_000, deduplicates: false };
  // The last one has a row, so that its deletion is looked at in each part of the round.
  const sightings = [{ workspace: 'w', group: '', user: 'user 2499', version: 1 }];
  const rows = { ...createTables(), pendingDeletions, sightings };
  const insert = async (table: 'pendingDeletions' | 'sightings') =>
    await replicas[0]?.insert(table, rows, runner, settings);
  for (const table of ['pendingDeletions', 'sightings'] as const) await driven(time, () => insert(table));
  let looks = 0;
  const counting = clients.map(
    (client) =>
      new Proxy(client, {
        get(target, name, receiver) {
          if (name !== 'query') return Reflect.get(target, name, receiver);
          return (call: Parameters<typeof target.query>[0]) => {
            if (call.query === STATEMENTS['find-longest-statement'].sql) looks += 1;
            return target.query(call);
          };
        },
      }),
  );
  const [own, ...others] = counting;
  if (!own) throw new Error('there are three replicas');
  const logger = createLogger('test', 'silent');
  const erasure = new Erasure(
    { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 1_000, ERASURE_GATHER_MS: 0 },
    { client: own, others, replicas: replicasOf(counting), writerId: 'writer', logger, failures: { inc() {} } },
  );
  erasure.setOwner(true);
  for (let round = 0; round < 2; round += 1) await driven(time, () => erasure.takeRound());
  expect(replicas[0]?.tables).toMatchObject({ pendingDeletions: [], sightings: [] });
  expect(looks).toBe(3);
});

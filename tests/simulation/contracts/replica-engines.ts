import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseSettings } from '@clickhouse/client';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { startKeeper } from '@sluice/local-stack/keeper';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrateReplicas } from '@sluice/shared/clickhouse/migrate-replicas';
import { pinnedSettings } from '@sluice/shared/clickhouse/settings';
import type { ClickHouseConfig } from '@sluice/shared/config';
import { until } from '@sluice/shared/testing/until';
import { STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { Keeper } from '../clickhouse/keeper.ts';
import { Replica } from '../clickhouse/replica.ts';
import { SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import { createSimulatedClient } from '../clickhouse/simulated-client.ts';
import { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import { VirtualTime } from '../world/virtual-time.ts';
import { driven } from './driven.ts';
import type { ReplicasEngine } from './replica-contracts.ts';

/** How long clients wait for a response, in milliseconds. */
const REQUEST_TIMEOUT_MS = 60_000;

/** Creates simulated replicas with empty tables. */
export function placedReplicas(seed: number, names: readonly string[]) {
  const time = new VirtualTime(new Random(seed, 'programs').next);
  const network = new Network(time, new Random(seed, 'network'));
  const keeper = new Keeper();
  const ignore = () => undefined;
  const replicas = names.map((name): Placed => {
    const common = { name, time, random: new Random(seed, name), onEvents: ignore };
    const replica = new Replica({ ...common, keeper, onRemoved: ignore });
    return { replica, clickhouse: new SimulatedClickHouse({ ...common, network, replica, onConflict: ignore }) };
  });
  return { time, network, keeper, replicas };
}

/** Creates two of them, for the contracts. */
export function simulatedReplicas(seed: number): ReplicasEngine {
  const { time, network, keeper, replicas: placed } = placedReplicas(seed, ['one', 'two']);
  const replicas = placed as unknown as readonly [Placed, Placed];
  return {
    connect: (place, settings = {}) =>
      createSimulatedClient(replicas[place].clickhouse, network, REQUEST_TIMEOUT_MS, {
        ...pinnedSettings,
        ...settings,
      }),
    eventsAt: async (place, workspace) =>
      replicas[place].clickhouse.tables.events.filter(({ workspace_id }) => workspace_id === workspace).length,
    async setFetching(isFetching) {
      for (const number of isFetching ? keeper.held.keys() : []) keeper.held.delete(number);
      const hold = () => {
        replicas[0].replica.onNextPart = ({ number }) => {
          keeper.held.set(number, [replicas[1].replica]);
          // It is called once.
          void time.wait(0).then(hold);
        };
      };
      if (isFetching) replicas[0].replica.onNextPart = undefined;
      else hold();
    },
    async setKeeper(isThere) {
      for (const { replica } of replicas) replica.setSession(isThere, true);
    },
    isRunning: async (place, prefix) => replicas[place].clickhouse.isRunning(prefix),
    sleep: (ms) => time.wait(ms),
    run: (work) => driven(time, work),
    async [Symbol.asyncDispose]() {},
  };
}

interface Placed {
  readonly replica: Replica;
  readonly clickhouse: SimulatedClickHouse;
}

/** Starts Keeper and two real replicas with the newest schema. @param dir for their data */
export async function realReplicas(dir: string): Promise<ReplicasEngine> {
  const started = new AsyncDisposableStack();
  const keeper = await startKeeper({ dataDir: join(dir, 'keeper') });
  started.defer(() => keeper.kill9());
  const database = `contracts_${randomUUID().replaceAll('-', '')}`;
  const start = async (name: string): Promise<ClickHouseConfig> => {
    const replica = { keeperPort: keeper.port, shard: '1', name };
    const server = await startClickHouse({ dataDir: join(dir, name), name, replica });
    started.defer(() => server.kill9());
    return {
      ...{ CLICKHOUSE_URL: server.url, CLICKHOUSE_DATABASE: database, CLICKHOUSE_REPLICATION: 'replicated' },
      ...{ CLICKHOUSE_USER: server.user, CLICKHOUSE_PASSWORD: server.password },
    };
  };
  const places = [await start('one'), await start('two')] as const;
  await migrateReplicas(places, createLogger('test', 'silent'));
  const connect = (place: 0 | 1, settings: ClickHouseSettings = {}): ClickHouseClient => {
    const options = { application: 'test', requestTimeoutMs: REQUEST_TIMEOUT_MS, connectionsMax: 4 };
    const client = createClickHouse(places[place], { ...options, settings: { ...pinnedSettings, ...settings } });
    started.defer(() => client.close());
    return client;
  };
  const own = [connect(0), connect(1)] as const;
  const numberOf = async (place: 0 | 1, query: string, query_params: Readonly<Record<string, unknown>> = {}) => {
    const result = await own[place].query({ query, query_params: { ...query_params }, format: 'JSONEachRow' });
    return Number((await result.json<{ number: number }>())[0]?.number);
  };
  return {
    connect,
    eventsAt: (place, workspace) =>
      numberOf(place, 'SELECT count() AS number FROM events WHERE workspace_id = {workspace:String}', { workspace }),
    async setFetching(isFetching) {
      await own[1].command({ query: `SYSTEM ${isFetching ? 'START' : 'STOP'} FETCHES events` });
    },
    async setKeeper(isThere) {
      if (isThere) await keeper.restart();
      else await keeper.kill9();
      for (const place of [0, 1] as const) {
        await until(`Keeper at ${place}`, async () => {
          const query = STATEMENTS['look-at-replica'].sql.replace('AS stuck', 'AS number');
          return (await numberOf(place, query)) === (isThere ? 0 : 1);
        });
      }
    },
    isRunning: async (place, prefix) => {
      const query = 'SELECT count() AS number FROM system.processes WHERE startsWith(query_id, {prefix:String})';
      return (await numberOf(place, query, { prefix })) > 0;
    },
    sleep: (ms) => delay(ms),
    run: (work) => work(),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

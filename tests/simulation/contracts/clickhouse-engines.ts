import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClickHouseSettings } from '@clickhouse/client';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { pinnedSettings, sharedSettings } from '@sluice/shared/clickhouse/settings';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { until } from '@sluice/shared/testing/until';
import { ANSWERING_SERVER } from '@sluice/storage/clickhouse/statements';
import type { FastList } from '../clickhouse/fast-columns.ts';
import { type Address, SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import { createSimulatedClient } from '../clickhouse/simulated-client.ts';
import { SharedSet } from '../shared/shared-set.ts';
import { Network } from '../world/network.ts';
import { Random } from '../world/random.ts';
import { VirtualTime } from '../world/virtual-time.ts';
import { driven } from './driven.ts';
import { mergedEvents, type StoredRows, simulatedRows, storedRows } from './stored-rows.ts';

/** How long clients wait for a response, in milliseconds. */
const REQUEST_TIMEOUT_MS = 30_000;

/** How long a statement of the simulator takes at most in the contracts, in milliseconds: long inserts last for seconds, as the real ones. */
export const SLOWNESS_MS = 250;

/** How long ClickHouse delays each block of an insert into a table that it takes for one with too many parts. */
const MONTH_DELAY_MS = 120;

const ERASED_TABLES = [
  'events',
  'entities',
  'entity_properties',
  'user_sightings',
  'identity_links',
  'dead_letters',
  'pending_deletions',
];

/** A ClickHouse that a contract is tried on: a real one, or that of the simulator. */
export interface ClickHouseEngine extends AsyncDisposable {
  readonly client: ClickHouseClient;
  /** Creates another client. @param requestTimeoutMs how long it waits for a response */
  connect(requestTimeoutMs: number): ClickHouseClient;
  /** Returns whether a statement runs whose query id begins so. */
  isRunning(queryIdPrefix: string): Promise<boolean>;
  sleep(ms: number): Promise<void>;
  /** Has inserts of events wait before each month but the first that they write. */
  delayInserts(): Promise<void>;
  /** Has a workspace declare fast properties, as query-api does. */
  declareFast(list: FastList): Promise<void>;
  /** Returns all rows, as text that is the same for the same rows. */
  rows(): Promise<StoredRows>;
  /** Merges the tables that an erasure looks into. Nothing else merges events. */
  merge(): Promise<void>;
  /** Records the server as a replica at which statements may store whose rows travel with them. */
  recordReplica(): Promise<void>;
  /** Runs work that uses the engine. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Creates a database of its own with the newest schema in a real ClickHouse. */
export async function realClickHouse(url: string): Promise<ClickHouseEngine> {
  const config = {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_DATABASE: `test_contract_${randomUUID().replaceAll('-', '')}`,
    ...WRITER_ACCOUNT,
  };
  await migrate(config, createLogger('test', 'silent'));
  const clients: ClickHouseClient[] = [];
  const connect = (requestTimeoutMs: number, account: object = {}) => {
    const created = createClickHouse(
      { ...config, ...account },
      { application: 'test', requestTimeoutMs, connectionsMax: 8 },
    );
    clients.push(created);
    return created;
  };
  const client = connect(REQUEST_TIMEOUT_MS);
  const administrator = connect(REQUEST_TIMEOUT_MS, ADMINISTRATOR);
  // An event that another one with its key hides is found until ClickHouse merges their parts, at a time that it chooses.
  await administrator.command({
    query: `ALTER TABLE events MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1,
      max_bytes_to_merge_at_min_space_in_pool = 1`,
  });
  return {
    client,
    connect: (requestTimeoutMs) => connect(requestTimeoutMs),
    async isRunning(prefix) {
      const query = 'SELECT count() AS running FROM system.processes WHERE startsWith(query_id, {prefix:String})';
      const result = await client.query({ query, query_params: { prefix }, format: 'JSONEachRow' });
      const [row] = await result.json<{ running: number }>();
      return row?.running !== 0;
    },
    sleep: (ms) => delay(ms),
    async delayInserts() {
      await administrator.command({
        query: `ALTER TABLE events MODIFY SETTING parts_to_delay_insert = 1, min_delay_to_insert_ms = ${MONTH_DELAY_MS}`,
      });
    },
    async declareFast({ workspace, set, names, declared }) {
      const declared_at = Date.UTC(2026) * 1_000 + declared;
      const values = [{ workspace_id: workspace, names, fast_set: set, row_set: set, declared_at }];
      await administrator.insert({ table: 'console_fast_properties', values, format: 'JSONEachRow' });
    },
    rows: () => storedRows(client),
    async merge() {
      for (const table of ERASED_TABLES) {
        // It does nothing while a merge of the table is running.
        await until(`one part of each partition of ${table}`, async () => {
          await administrator.command({
            query: `OPTIMIZE TABLE ${table} FINAL SETTINGS optimize_skip_merged_partitions = 1`,
          });
          const query = `SELECT uniqExact(_part) - uniqExact(_partition_id) AS surplus FROM ${table}`;
          const [row] = await (await client.query({ query, format: 'JSONEachRow' })).json<{ surplus: number }>();
          return Number(row?.surplus) === 0;
        });
      }
    },
    async recordReplica() {
      const query = `INSERT INTO writer_replicas (replica, is_gone, changed_at) SELECT ${ANSWERING_SERVER}, false, now64(6)`;
      await client.command({ query });
    },
    run: (work) => work(),
    async [Symbol.asyncDispose]() {
      // Otherwise its tables would cost the engine of all tests CPU time to the end.
      await administrator.command({ query: `DROP DATABASE ${config.CLICKHOUSE_DATABASE} SYNC` });
      await Promise.all(clients.map((created) => created.close()));
    },
  };
}

/** Creates a simulated ClickHouse with empty tables. @param slownessMs how long a statement takes at most */
export function simulatedClickHouse(seed: number, slownessMs?: number): ClickHouseEngine {
  const time = new VirtualTime(new Random(seed, 'programs').next);
  const network = new Network(time, new Random(seed, 'network'));
  const clickhouse = new SimulatedClickHouse({
    ...{ name: 'ClickHouse', time, network, random: new Random(seed, 'servers') },
    ...{ onEvents: () => undefined, onConflict: () => undefined },
  });
  if (slownessMs !== undefined) clickhouse.slownessMs = slownessMs;
  return engineOf({ time, network, address: clickhouse, clickhouse, settings: pinnedSettings });
}

/** Creates a simulated service of one replica, whose rows others could share, with empty tables. It is recorded. @param slownessMs as above */
export function simulatedReplica(seed: number, slownessMs?: number): ClickHouseEngine {
  const { time, network, address } = simulatedSet(seed, 1);
  const [clickhouse] = address.clickhouses;
  if (!clickhouse) throw new Error('there is no replica');
  if (slownessMs !== undefined) clickhouse.slownessMs = slownessMs;
  const replica = { replica: clickhouse.name, isGone: false, changedAt: time.dateMs };
  address.storage.tables.replicas.set(clickhouse.name, replica);
  return engineOf({ time, network, address, clickhouse, settings: { ...pinnedSettings, ...sharedSettings } });
}

/** Creates simulated replicas that share their rows, with empty tables. */
export function simulatedSet(seed: number, count: number) {
  const time = new VirtualTime(new Random(seed, 'programs').next);
  const network = new Network(time, new Random(seed, 'network'));
  const nothing = () => undefined;
  const oracle = { checkInsert: nothing, reportConflict: nothing, checkForgotten: nothing };
  const address = new SharedSet({ time, network, random: new Random(seed, 'servers'), count, oracle });
  return { time, network, address };
}

interface SimulatedEngine {
  readonly time: VirtualTime;
  readonly network: Network;
  readonly address: Address;
  readonly clickhouse: SimulatedClickHouse;
  readonly settings: ClickHouseSettings;
}

function engineOf({ time, network, address, clickhouse, settings }: SimulatedEngine): ClickHouseEngine {
  const connect = (requestTimeoutMs: number) => createSimulatedClient(address, network, requestTimeoutMs, settings);
  return {
    client: connect(REQUEST_TIMEOUT_MS),
    connect,
    isRunning: async (prefix) => clickhouse.isRunning(prefix),
    sleep: (ms) => time.wait(ms),
    // Its statements take time anyway.
    delayInserts: async () => undefined,
    declareFast: async (list) => void clickhouse.tables.fastLists.push(list),
    rows: async () => simulatedRows(clickhouse.tables),
    // Its other tables always are.
    async merge() {
      clickhouse.tables.events = mergedEvents(clickhouse.tables);
    },
    recordReplica: async () => undefined,
    run: (work) => driven(time, work),
    async [Symbol.asyncDispose]() {},
  };
}

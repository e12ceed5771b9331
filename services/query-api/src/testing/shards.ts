import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LocalClickHouse, startClickHouse } from '@sluice/local-stack/clickhouse';
import { type NativeRelay, startNativeRelay } from '@sluice/local-stack/native-relay';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { loginOf } from '@sluice/shared/clickhouse/connection';
import { QUERY_ACCOUNT, TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import type { PartitionRange } from '@sluice/shared/servers/partition-range';
import {
  administratorOf,
  connectReader,
  connectWebhooks,
  insertInto,
  type QueryService,
  startApp,
  type TestApp,
} from './query-service.ts';

const DATABASE = 'test_on_shards';

/** A ClickHouse server of its own that has the rows of some partitions. */
export interface Shard extends Pick<QueryService, 'insert' | 'store'> {
  readonly name: string;
  readonly partitions: PartitionRange;
  readonly url: string;
  readonly clickHouse: ClickHouseClient;
  /** By which the other servers read it. */
  readonly relay: NativeRelay;
  /** Records, as its writers do, that it had everything that Kafka had some time ago, in the blocks that it has now. */
  progress(agoMs?: number): Promise<void>;
  kill9(): Promise<void>;
}

/** The app over servers with ranges of partitions; those with the same range are mirrors. */
export interface Shards extends TestApp {
  readonly shards: readonly Shard[];
}

/**
 * Starts a ClickHouse server for each range, and the app over them.
 *
 * @param ranges the partitions of each server, by its name
 * @param profile settings of every account of the servers
 * @param given variables of the app; webhooks are stored on the first server
 */
export async function startShards(
  ranges: Readonly<Record<string, PartitionRange>>,
  profile: Readonly<Record<string, string>> = {},
  given: Readonly<Record<string, string>> = {},
): Promise<Shards> {
  const started = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-shards-'));
  started.defer(() => rm(folder, { recursive: true, force: true }));
  const starts = Object.entries(ranges).map(async ([name, partitions]): Promise<Shard> => {
    // docs/operate/secure.md names these rights.
    const rights = ['GRANT READ ON REMOTE', 'GRANT CREATE TEMPORARY TABLE ON *.*'];
    const accounts = { ...TEST_ACCOUNTS, added: { ...TEST_ACCOUNTS.added, sluice_query: rights } };
    const dataDir = join(folder, name);
    const server = await startClickHouse({ dataDir, name, profile, accounts, memoryBytesMax: 2 * 1_024 ** 3 });
    started.defer(() => server.kill9());
    return await openShard(name, partitions, server, started);
  });
  const settled = await Promise.allSettled(starts);
  const failed = settled.find((start) => start.status === 'rejected');
  if (failed) {
    await started.disposeAsync();
    throw failed.reason;
  }
  const shards = settled.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const path = join(folder, 'servers.json');
  const servers = shards.map(({ name, url, relay, partitions: { first, last } }) => {
    return { name, url, database: DATABASE, native: `127.0.0.1:${relay.port}`, partitions: `${first}-${last}` };
  });
  await writeFile(path, JSON.stringify({ servers }));
  const env = {
    ...{ CLICKHOUSE_URL: shards[0]?.url, CLICKHOUSE_DATABASE: DATABASE, CLICKHOUSE_SERVERS_FILE: path },
    // Nothing stores but the tests, so what is recorded grows old.
    ...{ READ_LAG_MS_MAX: '3600000', READ_STALE_MS_MAX: '3600000', ...given },
  };
  const app = await startApp(env, (config) => ({
    webhooks: started.adopt(connectWebhooks(config), async (client) => client?.close()),
    source: {
      path,
      defaults: { database: DATABASE, group: 'g' },
      login: loginOf({ ...config, ...QUERY_ACCOUNT }),
      connect: ({ url }) => connectReader({ ...config, CLICKHOUSE_URL: url }),
    },
    readiness: async () => [],
  }));
  return {
    ...app,
    shards,
    async stop() {
      await app.stop();
      await started.disposeAsync();
    },
  };
}

async function openShard(
  name: string,
  partitions: PartitionRange,
  { url, tcpPort, kill9 }: LocalClickHouse,
  started: AsyncDisposableStack,
): Promise<Shard> {
  const { config } = await createDatabase(url, DATABASE);
  const clickHouse = administratorOf(config);
  started.defer(() => clickHouse.close());
  const relay = await startNativeRelay(tcpPort);
  started.defer(() => relay.stop());
  const progress = async (agoMs = 0) => {
    await clickHouse.command({
      query: `INSERT INTO storing_progress
        SELECT now64(3) - toIntervalMillisecond({agoMs:UInt64}) AS at, at, max(_block_number) FROM events`,
      query_params: { agoMs },
    });
  };
  const shard = { name, partitions, url, clickHouse, relay, progress, kill9, ...insertInto(clickHouse) };
  await shard.insert('database_identity', [
    {
      ...{ id: crypto.randomUUID(), server: name, group_id: `g.${name}`, state: 'complete', detail: '' },
      ...{ partitions: `${partitions.first}-${partitions.last}`, recorded_at: Date.now() * 1_000 },
    },
  ]);
  await progress();
  return shard;
}

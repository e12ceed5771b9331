import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { pinnedSettings, sharedSettings } from '@sluice/shared/clickhouse/settings';
import { WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { startCloud } from '../../kit/cloud.ts';
import { createSimulatedClient } from '../clickhouse/simulated-client.ts';
import { simulatedSet } from './clickhouse-engines.ts';
import { driven } from './driven.ts';
import type { SharedEngine } from './shared-contracts.ts';

/** How long clients wait for a response, in milliseconds. */
const REQUEST_TIMEOUT_MS = 60_000;

/** Creates two simulated replicas with empty tables. */
export function simulatedShared(seed: number): SharedEngine {
  const { time, network, address } = simulatedSet(seed, 2);
  return {
    client: createSimulatedClient(address, network, REQUEST_TIMEOUT_MS, { ...pinnedSettings, ...sharedSettings }),
    stopOne: async () => address.clickhouses[1]?.stop(),
    sleep: (ms) => time.wait(ms),
    run: (work) => driven(time, work),
    async [Symbol.asyncDispose]() {},
  };
}

/** Starts what stands in for ClickHouse Cloud, with the newest schema. */
export async function realShared(): Promise<SharedEngine> {
  const started = new AsyncDisposableStack();
  const cloud = started.use(await startCloud());
  const config = {
    ...{ CLICKHOUSE_URL: cloud.url, CLICKHOUSE_DATABASE: 'test_shared', CLICKHOUSE_REPLICATION: 'shared' as const },
    ...WRITER_ACCOUNT,
  };
  await migrate(config, createLogger('test', 'silent'));
  const client = createClickHouse(config, {
    application: 'test',
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    connectionsMax: 4,
  });
  started.defer(() => client.close());
  return {
    client,
    stopOne: async () => void (await cloud.servers[1]?.kill9()),
    sleep: (ms) => delay(ms),
    run: (work) => work(),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

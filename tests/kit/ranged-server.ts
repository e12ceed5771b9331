import type { LocalClickHouse, LocalClickHouseOptions } from '@sluice/local-stack/clickhouse';
import { type NativeRelay, startNativeRelay } from '@sluice/local-stack/native-relay';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { until } from '@sluice/shared/testing/until';
import { ownClickHouse } from './engines.ts';
import { readMetric } from './metrics.ts';
import type { PipelineServer } from './pipeline.ts';
import type { Service } from './service.ts';

/** A ClickHouse server that stores a range of partitions. */
export interface RangedServer extends AsyncDisposable {
  readonly engine: LocalClickHouse;
  /** Where others read it. */
  readonly relay: NativeRelay;
}

/** Returns what the file of servers says of such a server. @param partitions a range such as `0-2`; default: all */
export function entryOf({ engine, relay }: RangedServer, partitions?: string): PipelineServer {
  const entry = { url: engine.url, native: `127.0.0.1:${relay.port}` };
  return partitions === undefined ? entry : { ...entry, partitions };
}

/** Returns what the file says of several ones, by their names. */
export function entriesOf(
  servers: Readonly<Record<string, RangedServer>>,
  partitions: Readonly<Record<string, string>>,
): Record<string, PipelineServer> {
  const entries = Object.entries(servers).map(([name, server]) => [name, entryOf(server, partitions[name])] as const);
  return Object.fromEntries(entries);
}

/**
 * Kills each of several servers once, and starts it again.
 *
 * @param query the query-api that has to read it before the next one is killed
 * @param goOn waits until work goes on, before each step and after the last one
 */
export async function killEachOnce(
  servers: Readonly<Record<string, RangedServer>>,
  query: Pick<Service, 'url'>,
  goOn: () => Promise<void>,
): Promise<void> {
  for (const [name, { engine }] of Object.entries(servers)) {
    await goOn();
    await engine.kill9();
    await goOn();
    await engine.restart();
    const isRead = async () => (await readMetric(query, 'sluice_query_server_readable', { server: name })) === 1;
    await until(`query-api to read ${name} again`, isRead);
  }
  await goOn();
}

/** Starts a ClickHouse server that reads others, and that others may read. */
export async function startRangedServer(options: Partial<LocalClickHouseOptions> = {}): Promise<RangedServer> {
  await using cleanup = new AsyncDisposableStack();
  // docs/operate/secure.md names these rights.
  const added = {
    ...TEST_ACCOUNTS.added,
    sluice_query: ['GRANT READ ON REMOTE', 'GRANT CREATE TEMPORARY TABLE ON *.*'],
  };
  const engine = cleanup.use(await ownClickHouse({ accounts: { ...TEST_ACCOUNTS, added }, ...options }));
  const relay = await startNativeRelay(engine.tcpPort);
  cleanup.defer(() => relay.stop());
  const kept = cleanup.move();
  return { engine, relay, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

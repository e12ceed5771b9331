import type { LocalClickHouse, LocalClickHouseOptions } from '@sluice/local-stack/clickhouse';
import { type NativeRelay, startNativeRelay } from '@sluice/local-stack/native-relay';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { ownClickHouse } from './engines.ts';

/** A ClickHouse server that stores a range of partitions. */
export interface RangedServer extends AsyncDisposable {
  readonly engine: LocalClickHouse;
  /** Where others read it. */
  readonly relay: NativeRelay;
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

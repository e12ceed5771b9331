import { type LocalClickHouse, type LocalClickHouseOptions, startClickHouse } from '@sluice/local-stack/clickhouse';
import { type LocalKafka, type LocalKafkaOptions, startKafka } from '@sluice/local-stack/kafka';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { TESTED_KAFKAS } from './tested-engines.ts';

/**
 * Starts a Kafka that one test file has for itself and may kill. `await using` ends it, and removes its data unless
 * `dataDir` is given.
 */
export async function ownKafka(options: Partial<LocalKafkaOptions> = {}): Promise<LocalKafka & AsyncDisposable> {
  return await own(
    (dataDir) => startKafka({ dataDir, version: TESTED_KAFKAS.newest.version, ...options }),
    async (kafka) => {
      await Promise.all(kafka.pids.map((_, broker) => kafka.kill9(broker)));
    },
  );
}

/** Starts a ClickHouse that one test file has for itself, as {@link ownKafka}. */
export async function ownClickHouse(
  options: Partial<LocalClickHouseOptions> = {},
): Promise<LocalClickHouse & AsyncDisposable> {
  return await own(
    (dataDir) => startClickHouse({ dataDir, accounts: TEST_ACCOUNTS, ...options }),
    (clickhouse) => clickhouse.kill9(),
  );
}

async function own<Engine extends object>(
  start: (dataDir: string) => Promise<Engine>,
  end: (engine: Engine) => Promise<void>,
): Promise<Engine & AsyncDisposable> {
  await using cleanup = new AsyncDisposableStack();
  const folder = cleanup.use(await makeTempDir());
  const engine = await start(folder.path);
  cleanup.defer(() => end(engine));
  const kept = cleanup.move();
  return Object.assign(engine, { [Symbol.asyncDispose]: () => kept.disposeAsync() });
}

import { type LocalClickHouse, type LocalClickHouseOptions, startClickHouse } from '@sluice/local-stack/clickhouse';
import { type LocalKafka, type LocalKafkaOptions, startKafka } from '@sluice/local-stack/kafka';
import { KAFKA_VERSION, OLDER_KAFKA_VERSION } from '@sluice/local-stack/kafka-libs';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';

/**
 * The engines that tests start, by the names of their rows in docs/operate/engines.md. Those that are no default are started by this
 * list alone, and `engines.test.ts` compares it with the page.
 */
export const TESTED_KAFKAS = {
  newest: { name: 'Apache Kafka 4.3', version: KAFKA_VERSION },
  older: { name: 'Apache Kafka 3.9', version: OLDER_KAFKA_VERSION },
  /** Another implementation of the protocol, in memory: `kfake.ts`. */
  kfake: { name: 'kfake of franz-go', version: undefined },
} as const;

export const TESTED_CLICKHOUSES = {
  one: { name: 'one server, 26.7' },
  several: { name: '[mirrors, and ranges](servers.md), 26.7' },
} as const;

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

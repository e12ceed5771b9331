import { type LocalClickHouse, type LocalClickHouseOptions, startClickHouse } from '@sluice/local-stack/clickhouse';
import { type LocalKafka, type LocalKafkaOptions, startKafka } from '@sluice/local-stack/kafka';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';

/** A Kafka of a test's own, which it may do anything to; `await using` ends it and removes its data. */
export async function ownKafka(
  options: Omit<LocalKafkaOptions, 'dataDir'> = {},
): Promise<LocalKafka & AsyncDisposable> {
  return await own(
    (dataDir) => startKafka({ ...options, dataDir }),
    async (kafka) => {
      await Promise.all(kafka.pids.map((_, broker) => kafka.kill9(broker)));
    },
  );
}

/** A ClickHouse of a test's own, as {@link ownKafka}. */
export async function ownClickHouse(
  options: Omit<LocalClickHouseOptions, 'dataDir'> = {},
): Promise<LocalClickHouse & AsyncDisposable> {
  return await own(
    (dataDir) => startClickHouse({ ...options, dataDir }),
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

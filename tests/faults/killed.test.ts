import { eventually } from '@sluice/shared/testing/eventually';
import { test } from 'vitest';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

test('each process is killed once under load: what was accepted is stored once, and nothing else is', async () => {
  await using engines = new AsyncDisposableStack();
  const [kafka, clickhouse] = await Promise.all([
    ownKafka().then((engine) => engines.use(engine)),
    ownClickHouse().then((engine) => engines.use(engine)),
  ]);
  await using pipeline = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: clickhouse.url,
    name: 'killed',
  });
  await using load = startLoad({ pipeline, urls: () => [pipeline.services['ingest-api'].url], concurrency: 4 });
  const kills: readonly (() => Promise<unknown>)[] = [
    () => pipeline.killAndRestart('writer'),
    () => clickhouse.kill9().then(() => clickhouse.restart()),
    () => pipeline.killAndRestart('ingest-api'),
    () => pipeline.killAndRestart('query-api'),
    () => kafka.kill9().then(() => kafka.restart()),
  ];
  for (const kill of kills) {
    const before = load.acceptedSoFar();
    await eventually(load.acceptedSoFar).toBeGreaterThan(before + 50);
    await kill();
  }
  await expectExactlyOnce(pipeline, clickhouse.url, await load.stop());
});

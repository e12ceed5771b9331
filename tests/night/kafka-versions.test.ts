import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { diagnose } from '../kit/doctor.ts';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { TESTED_KAFKAS } from '../kit/tested-engines.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

const { name, version } = TESTED_KAFKAS.older;

test(`${name}: what was accepted is stored once while brokers and a writer are killed`, async () => {
  await using kafka = await ownKafka({ version, brokers: 3 });
  await using clickhouse = await ownClickHouse();
  const { results } = await diagnose(['ingest-api'], { KAFKA_BROKERS: kafka.brokers.join() });
  expect(results.find((check) => check.name === 'kafka.version')?.found).toContain(`${name}; `);
  await using pipeline = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: clickhouse.url,
    name: 'older',
  });
  await using load = startLoad({ pipeline, urls: () => [pipeline.services['ingest-api'].url], concurrency: 4 });
  const kills: readonly (() => Promise<unknown>)[] = [
    () => kafka.kill9(0).then(() => kafka.restart(0)),
    () => pipeline.killAndRestart('writer'),
    () => kafka.kill9(1).then(() => kafka.restart(1)),
  ];
  for (const kill of kills) {
    const before = load.acceptedSoFar();
    await eventually(load.acceptedSoFar).toBeGreaterThan(before + 50);
    await kill();
  }
  await expectExactlyOnce(pipeline, clickhouse.url, await load.stop());
});

import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { cutOffLog } from '../kit/kafka-log.ts';
import { readMetric } from '../kit/metrics.ts';

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

test('ingest-api notices that Kafka has lost messages that it had acknowledged, and counts and logs them', async () => {
  await using dataDir = await makeTempDir();
  await using kafka = await ownKafka({ dataDir: dataDir.path });
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'cut',
    env: { KAFKA_PARTITIONS: '1' },
  });
  const lost = () => readMetric(ingest.service, 'sluice_ingest_lost_messages_total');
  for (let count = 0; count < 20; count += 1) expect(await ingest.submit(BODY)).toBe(202);
  await kafka.kill9();
  await kafka.restart();
  await eventually(() => ingest.submit(BODY)).toBe(202);
  expect(await lost()).toBe(0);

  await kafka.kill9();
  expect(await cutOffLog(dataDir.path, 'cut.events-0', 15)).toBeGreaterThanOrEqual(0);
  await kafka.restart();
  await eventually(() => ingest.submit(BODY)).toBe(202);
  expect(await lost()).toBe(15);
  expect(ingest.service.log()).toContain('Kafka has lost messages that it had acknowledged');
});

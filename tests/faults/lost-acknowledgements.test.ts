import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { startIngestAlone } from '../support/ingest-alone.ts';
import { cutOffLog } from '../support/kafka-log.ts';
import { readMetric } from '../support/metrics.ts';

vi.setConfig({ testTimeout: 120_000 });

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

test('ingest-api notices that Kafka has lost what it had acknowledged, counts it and says so', async () => {
  await using folder = await makeTempDir();
  await using kafka = await ownKafka({ dataDir: folder.path });
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'cut',
    env: { KAFKA_PARTITIONS: '1' },
  });
  const lost = () => readMetric(ingest.service, 'sluice_ingest_lost_messages_total');
  for (let count = 0; count < 20; count += 1) expect(await ingest.submit(BODY)).toBe(202);
  await kafka.kill9();
  await kafka.restart();
  await expect.poll(() => ingest.submit(BODY), { timeout: 60_000 }).toBe(202);
  expect(await lost()).toBe(0);

  await kafka.kill9();
  await cutOffLog(folder.path, 'cut.events-0', 15);
  await kafka.restart();
  await expect.poll(() => ingest.submit(BODY), { timeout: 60_000 }).toBe(202);
  expect(await lost()).toBe(15);
  expect(ingest.service.log()).toContain('Kafka has lost messages that it had acknowledged');
});

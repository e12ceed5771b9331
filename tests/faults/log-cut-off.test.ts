import type { LocalKafka } from '@sluice/local-stack/kafka';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { expectHalted, resumeAll, startOperated, startWriter, submitEach } from '../kit/halted-partitions.ts';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { cutOffLog } from '../kit/kafka-log.ts';
import { readMetric } from '../kit/metrics.ts';

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

const clickhouseUrl = inject('clickhouseUrl');
const started = new AsyncDisposableStack();
let kafka: LocalKafka;
let dataDir: string;

beforeAll(async () => {
  dataDir = started.use(await makeTempDir()).path;
  kafka = started.use(await ownKafka({ dataDir }));
});
afterAll(() => started.disposeAsync());

/** Cuts the newest messages off the log of a partition, while the broker is down. */
async function cutOff(partition: string, messages: number): Promise<void> {
  await kafka.kill9();
  expect(await cutOffLog(dataDir, partition, messages)).toBeGreaterThanOrEqual(0);
  await kafka.restart();
}

test('a log that was cut off and grew again while the writer was away: it halts, and once resumed, everything that was accepted is there', async () => {
  await using pipeline = await startOperated({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'regrown' });
  const { running } = pipeline;
  await submitEach(running, 40);
  await running.settled(40);
  expect(await running.services.writer.stop()).toBe(0);
  await cutOff('regrown.events-0', 10);
  await submitEach(running, 60);
  const writer = startWriter(running);
  await expectHalted(writer, 'regrown.events/0', /the log is another one/);
  await resumeAll(pipeline);
  await running.settled(100);
  await writer.ready();
});

test('ingest-api notices that Kafka has lost messages that it had acknowledged, and counts and logs them', async () => {
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

  await cutOff('cut.events-0', 15);
  await eventually(() => ingest.submit(BODY)).toBe(202);
  expect(await lost()).toBe(15);
  expect(ingest.service.log()).toContain('Kafka has lost messages that it had acknowledged');
});

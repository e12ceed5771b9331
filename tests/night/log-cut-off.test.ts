import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { expectHalted, resumeAll, startOperated, startWriter, submitEach } from '../kit/halted-partitions.ts';
import { cutOffLog } from '../kit/kafka-log.ts';

test('a log that was cut off and grew again while the writer was away: it halts, and once resumed, everything that was accepted is there', async () => {
  await using dataDir = await makeTempDir();
  await using kafka = await ownKafka({ dataDir: dataDir.path });
  const clickhouseUrl = inject('clickhouseUrl');
  await using pipeline = await startOperated({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'regrown' });
  const { running } = pipeline;
  await submitEach(running, 40);
  await running.settled(40);
  expect(await running.services.writer.stop()).toBe(0);
  await kafka.kill9();
  expect(await cutOffLog(dataDir.path, 'regrown.events-0', 10)).toBeGreaterThanOrEqual(0);
  await kafka.restart();
  await submitEach(running, 60);
  const writer = startWriter(running);
  await expectHalted(writer, 'regrown.events/0', /the log is another one/);
  await resumeAll(pipeline);
  await running.settled(100);
  await writer.ready();
});

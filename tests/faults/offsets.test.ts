import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { configSchema } from '@sluice/writer/config';
import { afterEach, expect, inject, test, vi } from 'vitest';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

vi.setConfig({ testTimeout: 120_000 });

let pipeline: Pipeline | undefined;

afterEach(() => pipeline?.stop());

const config = loadConfig(configSchema, {
  KAFKA_BROKERS: inject('kafkaBrokers').join(','),
  CLICKHOUSE_URL: inject('clickhouseUrl'),
});
const kafka = createKafka(config, 'test', createLogger('test', 'silent'));

/** A pipeline whose writer has stored something and is stopped, and events that wait in Kafka since. */
async function withWaitingEvents(name: string): Promise<Pipeline> {
  const started = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name,
  });
  pipeline = started;
  const submit = async (count: number) => {
    for (let index = 0; index < count; index += 1) {
      const { status } = await started.submit({ foreignUserGroupId: 'g', events: Array(20).fill({ event: 'e' }) });
      expect(status).toBe(202);
    }
  };
  await submit(3);
  await started.settled(60);
  expect(await started.services.writer.stop()).toBe(0);
  await submit(3);
  return started;
}

/** The writer, started again: it is to give up, saying why. */
async function writerGivesUp(running: Pipeline, why: RegExp): Promise<void> {
  await running.restart('writer').catch(() => undefined);
  expect(await running.services.writer.exited()).toBe(1);
  expect(running.services.writer.log()).toMatch(why);
}

test('retention has passed the committed offset: the writer halts and says how many messages are gone', async () => {
  const running = await withWaitingEvents('retention');
  await withAdmin(kafka, async (admin) => {
    const offsets = await admin.fetchTopicOffsets('retention.events');
    const partitions = offsets.map(({ partition, high }) => ({ partition, offset: high }));
    await admin.deleteTopicRecords({ topic: 'retention.events', partitions });
  });
  await writerGivesUp(running, /messages are gone before they were stored/);
});

test('the topic was made anew: Kafka forgets the offsets, and the writer begins with its oldest message', async () => {
  const running = await withWaitingEvents('anew');
  expect(await running.services['ingest-api'].stop()).toBe(0);
  await withAdmin(kafka, async (admin) => {
    await admin.deleteTopics({ topics: ['anew.events'] });
    await expect.poll(async () => await admin.listTopics()).not.toContain('anew.events');
  });
  await running.restart('ingest-api');
  for (let index = 0; index < 5; index += 1) {
    await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'in the new topic' }] });
  }
  await running.restart('writer');
  await running.settled(65);
});

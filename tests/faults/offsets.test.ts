import { withAdmin } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { expectBalanced } from '../kit/audit.ts';
import { deleteRecords } from '../kit/delete-records.ts';
import {
  expectHalted,
  type OperatedPipeline,
  resumeAll,
  startOperated,
  startWriter,
  submitEach,
} from '../kit/halted-partitions.ts';
import { kafkaClient } from '../kit/kafka-client.ts';
import { readMetric } from '../kit/metrics.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];
const kafka = kafkaClient(kafkaBrokers);

/** All tests use it, one after the other. */
let pipeline: OperatedPipeline;

beforeAll(async () => {
  pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'offsets' });
});
afterAll(() => pipeline?.[Symbol.asyncDispose]());

test('the topic was deleted and created again: its partitions halt, and an operator resumes them from the oldest message', async () => {
  const { running } = pipeline;
  await submitEach(running, 20);
  await pipeline.settledWith(20);
  expect(await running.services.writer.stop()).toBe(0);
  expect(await running.services['ingest-api'].stop()).toBe(0);
  await withAdmin(kafka, async (admin) => {
    await admin.deleteTopics({ topics: ['offsets.events'] });
    await eventually(async () => await admin.listTopics()).not.toContain('offsets.events');
  });
  await running.restart('ingest-api');
  await submitEach(running, 40);
  const writer = startWriter(running);
  await expectHalted(writer, 'offsets.events/0', /another one|cut off/);
  await resumeAll(pipeline);
  await pipeline.settledWith(40);
  await writer.ready();
});

test('retention has deleted messages that were not stored: that partition halts, the other goes on, an operator resumes it', async () => {
  const { running, operate } = pipeline;
  await submitEach(running, 20);
  await pipeline.settledWith(20);
  await running.drained();
  expect(await running.services.writer.stop()).toBe(0);
  const offsets = () => withAdmin(kafka, (admin) => admin.fetchTopicOffsets('offsets.events'));
  const before = await offsets();
  await submitEach(running, 20);
  const [from, to] = [before, await offsets()].map((found) => found.find(({ partition }) => partition === 0)?.high);
  const gone = Number(to) - Number(from);
  expect(gone).toBeGreaterThan(0);
  await deleteRecords(kafka, 'offsets.events', 0);
  await expectHalted(startWriter(running), 'offsets.events/0', /messages are gone/);
  await pipeline.settledWith(20 - gone);

  expect(await running.services.writer.stop()).toBe(0);
  await submitEach(running, 20);
  const writer = startWriter(running);
  await expectHalted(writer, 'offsets.events/0', /messages are gone/);
  expect((await operate('status')).output).toMatch(/offsets\.events\/0 .*halted: messages are gone/);
  const declined = await operate('resume', 'offsets.events/0', '--from', 'oldest');
  expect(declined.code).toBe(1);
  expect(declined.output).toContain(
    `Offsets ${from} to ${Number(to) - 1} of offsets.events/0 were deleted by Kafka before they were stored: ${gone} messages.`,
  );
  expect((await operate('resume', 'offsets.events/0', '--from', 'oldest', '--yes')).code).toBe(0);
  await pipeline.settledWith(20);
  await writer.ready();
  await running.drained();
  expect(await readMetric(writer, 'sluice_writer_halted_partitions')).toBe(0);
  // What the log no longer has, and what was stored from the topic before, is said.
  const { notes } = await expectBalanced(running);
  expect(notes).toContainEqual(expect.stringMatching(/^offsets\.events\/0 was halted, .* deleted \d+ messages/));
  expect(notes).toContainEqual(expect.stringMatching(/^The log of offsets\.events\/1 has lost records/));
});

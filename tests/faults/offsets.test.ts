import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { configSchema } from '@sluice/writer/config';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { deleteRecords } from '../kit/delete-records.ts';
import {
  expectHalted,
  type OperatedPipeline,
  readiness,
  resumeAll,
  startOperated,
  startWriter,
  submitEach,
} from '../kit/halted-partitions.ts';
import { readMetric } from '../kit/metrics.ts';
import { uuidInPartition } from '../kit/uuid-in-partition.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];
const sharedKafka = createKafka(
  loadConfig(configSchema, { KAFKA_BROKERS: kafkaBrokers.join(','), CLICKHOUSE_URL: clickhouseUrl }),
  'test',
  createLogger('test', 'silent'),
);

/** All tests use it, one after the other. */
let pipeline: OperatedPipeline;
/** How many events are visible. */
let visible = 0;

beforeAll(async () => {
  pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'offsets' });
});
afterAll(() => pipeline?.[Symbol.asyncDispose]());

/** Waits until so many more events are visible. */
async function settledWith(more: number): Promise<void> {
  visible += more;
  await pipeline.running.settled(visible);
}

test('the topic was deleted and created again: its partitions halt, and an operator resumes them from the oldest message', async () => {
  const { running } = pipeline;
  await submitEach(running, 20);
  await settledWith(20);
  expect(await running.services.writer.stop()).toBe(0);
  expect(await running.services['ingest-api'].stop()).toBe(0);
  await withAdmin(sharedKafka, async (admin) => {
    await admin.deleteTopics({ topics: ['offsets.events'] });
    await eventually(async () => await admin.listTopics()).not.toContain('offsets.events');
  });
  await running.restart('ingest-api');
  await submitEach(running, 40);
  const writer = startWriter(running);
  await expectHalted(writer, 'offsets.events/0', /another one|cut off/);
  await resumeAll(pipeline);
  await settledWith(40);
  await writer.ready();
});

test('ClickHouse was emptied: partitions that had committed anything halt, and what Kafka has is stored again', async () => {
  const { running, operate } = pipeline;
  const empty = () => readClickHouse(clickhouseUrl, `DROP DATABASE ${running.database} SYNC`);
  await submitEach(running, 20);
  await settledWith(20);
  // What came before the topic was created again is in ClickHouse alone.
  visible = 60;
  await running.drained();
  expect(await running.services.writer.stop()).toBe(0);
  await empty();
  const writer = startWriter(running);
  await expectHalted(writer, 'offsets.events/0', /nothing is stored/);
  await eventually(async () => (await operate('status')).output).toMatch(/offsets\.events\/0 .*halted/);
  const { output } = await operate('resume', '--all', '--from', 'oldest');
  expect(output).toMatch(
    /offsets\.events\/0 resumes at offset 0\. Nothing is given up: offsets 0 to \d+ are read again/,
  );
  await resumeAll(pipeline);
  await settledWith(0);
  await writer.ready();

  // The same while the writer runs: first the tables are gone, then an operator applies the migrations.
  await running.drained();
  await empty();
  await eventually(() => readiness(writer)).toMatch(/^503 .*cannot be read/);
  await submitEach(running, 10);
  expect(await sluice(running, ['migrations', 'apply'])).toMatchObject({ code: 0 });
  await expectHalted(writer, 'offsets.events/0', /nothing is stored/);
  await resumeAll(pipeline);
  await settledWith(10);
  await writer.ready();
});

test('an operator halts a partition while the writer runs, and resumes it where it was', async () => {
  const { running, operate } = pipeline;
  const { writer } = running.services;
  await submitEach(running, 10);
  await settledWith(10);
  expect((await operate('halt', '--all')).code).toBe(0);
  await expectHalted(writer, 'offsets.events/1', /by hand/);
  await submitEach(running, 10);
  expect((await running.get<{ total: number }>('/events?limit=0')).body.total).toBe(visible);
  const resumed = await operate('resume', '--all', '--from', 'stored', '--yes');
  expect(resumed.output).toMatch(/Nothing is given up/);
  await settledWith(10);
  await writer.ready();
  expect((await operate('resume', 'offsets.events/1', '--from', 'stored', '--yes')).output).toMatch(/is not halted/);
});

test('retention has deleted messages that were not stored: that partition halts, the other goes on, an operator resumes it', async () => {
  const { running, operate } = pipeline;
  await submitEach(running, 20);
  await settledWith(20);
  await running.drained();
  expect(await running.services.writer.stop()).toBe(0);
  const offsets = () => withAdmin(sharedKafka, (admin) => admin.fetchTopicOffsets('offsets.events'));
  const before = await offsets();
  await submitEach(running, 20);
  const [from, to] = [before, await offsets()].map((found) => found.find(({ partition }) => partition === 0)?.high);
  const gone = Number(to) - Number(from);
  expect(gone).toBeGreaterThan(0);
  await deleteRecords(sharedKafka, 'offsets.events', 0);
  await expectHalted(startWriter(running), 'offsets.events/0', /messages are gone/);
  await settledWith(20 - gone);

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
  await settledWith(20);
  await writer.ready();
  await running.drained();
  expect(await readMetric(writer, 'sluice_writer_halted_partitions')).toBe(0);
});

test('a writer whose epoch is over, and that has nothing else to store, halts a partition for good', async () => {
  const { running, operate } = pipeline;
  const { writer } = running.services;
  await submitEach(running, 10);
  await settledWith(10);
  await running.drained();
  // As the late take-over of a member does that Kafka has forgotten.
  const epochs = `${running.database}.writer_epochs`;
  await readClickHouse(
    clickhouseUrl,
    `INSERT INTO ${epochs} (group_id, incarnation, generation, leader_id)
     SELECT group_id, incarnation + 1, generation, 'another' FROM ${epochs} ORDER BY incarnation DESC LIMIT 1`,
  );
  writer.freeze();
  // The response to the fetch that is under way would hold what is submitted now.
  await delay(1_000);
  for (let sent = 0; sent < 5; sent += 1) {
    const uuid = uuidInPartition(2, (partition) => partition === 0);
    const body = { foreignUserGroupId: 'g', events: [{ event: 'e', uuid }] };
    expect((await running.submit(body)).status).toBe(202);
  }
  await deleteRecords(sharedKafka, 'offsets.events', 0);
  writer.thaw();
  await expectHalted(writer, 'offsets.events/0', /messages are gone/);
  await until('the halt to be recorded', async () =>
    /offsets\.events\/0 .*halted/.test((await operate('status')).output),
  );
  await resumeAll(pipeline);
  await submitEach(running, 10);
  await settledWith(10);
  await writer.ready();
});

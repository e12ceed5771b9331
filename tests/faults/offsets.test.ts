import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { configSchema } from '@sluice/writer/config';
import { expect, inject, test } from 'vitest';
import { sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { deleteRecords } from '../kit/delete-records.ts';
import {
  expectHalted,
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

test('retention has deleted messages that were not stored: that partition halts, the other goes on, an operator resumes it', async () => {
  await using pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'retention' });
  const { running, operate } = pipeline;
  await submitEach(running, 20);
  await running.settled(20);
  await running.drained();
  expect(await running.services.writer.stop()).toBe(0);
  const offsets = () => withAdmin(sharedKafka, (admin) => admin.fetchTopicOffsets('retention.events'));
  const before = await offsets();
  await submitEach(running, 20);
  const [from, to] = [before, await offsets()].map((found) => found.find(({ partition }) => partition === 0)?.high);
  const gone = Number(to) - Number(from);
  expect(gone).toBeGreaterThan(0);
  await deleteRecords(sharedKafka, 'retention.events', 0);
  await expectHalted(startWriter(running), 'retention.events/0', /messages are gone/);
  await running.settled(40 - gone);

  expect(await running.services.writer.stop()).toBe(0);
  await submitEach(running, 20);
  const writer = startWriter(running);
  await expectHalted(writer, 'retention.events/0', /messages are gone/);
  expect((await operate('status')).output).toMatch(/retention\.events\/0 .*halted: messages are gone/);
  const declined = await operate('resume', 'retention.events/0', '--from', 'oldest');
  expect(declined.code).toBe(1);
  expect(declined.output).toContain(
    `Offsets ${from} to ${Number(to) - 1} of retention.events/0 were deleted by Kafka before they were stored: ${gone} messages.`,
  );
  expect((await operate('resume', 'retention.events/0', '--from', 'oldest', '--yes')).code).toBe(0);
  await running.settled(60 - gone);
  await writer.ready();
  await running.drained();
  expect(await readMetric(writer, 'sluice_writer_halted_partitions')).toBe(0);
});

test('a writer whose epoch is over, and that has nothing else to store, halts a partition for good', async () => {
  await using pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'over' });
  const { running, operate } = pipeline;
  const { writer } = running.services;
  await submitEach(running, 10);
  await running.settled(10);
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
  await deleteRecords(sharedKafka, 'over.events', 0);
  writer.thaw();
  await expectHalted(writer, 'over.events/0', /messages are gone/);
  await until('the halt to be recorded', async () => /over\.events\/0 .*halted/.test((await operate('status')).output));
  await resumeAll(pipeline);
  await submitEach(running, 10);
  await running.settled(20);
  await writer.ready();
});

test('the topic was deleted and created again: its partitions halt, and an operator resumes them from the oldest message', async () => {
  await using pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'anew' });
  const { running } = pipeline;
  await submitEach(running, 20);
  await running.settled(20);
  expect(await running.services.writer.stop()).toBe(0);
  expect(await running.services['ingest-api'].stop()).toBe(0);
  await withAdmin(sharedKafka, async (admin) => {
    await admin.deleteTopics({ topics: ['anew.events'] });
    await eventually(async () => await admin.listTopics()).not.toContain('anew.events');
  });
  await running.restart('ingest-api');
  await submitEach(running, 40);
  const writer = startWriter(running);
  await expectHalted(writer, 'anew.events/0', /another one|cut off/);
  await resumeAll(pipeline);
  await running.settled(60);
  await writer.ready();
});

test('ClickHouse was emptied: partitions that had committed anything halt, and what Kafka has is stored again', async () => {
  await using pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'emptied' });
  const { running, operate } = pipeline;
  const empty = () => readClickHouse(clickhouseUrl, `DROP DATABASE ${running.database} SYNC`);
  await submitEach(running, 20);
  await running.settled(20);
  await running.drained();
  expect(await running.services.writer.stop()).toBe(0);
  await empty();
  const writer = startWriter(running);
  await expectHalted(writer, 'emptied.events/0', /nothing is stored/);
  await eventually(async () => (await operate('status')).output).toMatch(/emptied\.events\/0 .*halted/);
  const { output } = await operate('resume', '--all', '--from', 'oldest');
  expect(output).toMatch(
    /emptied\.events\/0 resumes at offset 0\. Nothing is given up: offsets 0 to \d+ are read again/,
  );
  await resumeAll(pipeline);
  await running.settled(20);
  await writer.ready();

  // The same while the writer runs: first the tables are gone, then an operator applies the migrations.
  await running.drained();
  await empty();
  await eventually(() => readiness(writer)).toMatch(/^503 .*cannot be read/);
  await submitEach(running, 10);
  expect(await sluice(running, ['migrations', 'apply'])).toMatchObject({ code: 0 });
  await expectHalted(writer, 'emptied.events/0', /nothing is stored/);
  await resumeAll(pipeline);
  await running.settled(30);
  await writer.ready();
});

test('an operator halts a partition while the writer runs, and resumes it where it was', async () => {
  await using pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'byhand' });
  const { running, operate } = pipeline;
  const { writer } = running.services;
  await submitEach(running, 10);
  await running.settled(10);
  expect((await operate('halt', '--all')).code).toBe(0);
  await expectHalted(writer, 'byhand.events/1', /by hand/);
  await submitEach(running, 10);
  expect((await running.get<{ total: number }>('/events?limit=0')).body.total).toBe(10);
  const resumed = await operate('resume', '--all', '--from', 'stored', '--yes');
  expect(resumed.output).toMatch(/Nothing is given up/);
  await running.settled(20);
  await writer.ready();
  expect((await operate('resume', 'byhand.events/1', '--from', 'stored', '--yes')).output).toMatch(/is not halted/);
});

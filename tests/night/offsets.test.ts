import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
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
import { kafkaClient } from '../kit/kafka-client.ts';
import { uuidInPartition } from '../kit/uuid-in-partition.ts';

const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];
const kafka = kafkaClient(kafkaBrokers);

/** All tests use it, one after the other. */
let pipeline: OperatedPipeline;

beforeAll(async () => {
  pipeline = await startOperated({ kafkaBrokers, clickhouseUrl, name: 'moreoffsets' });
});
afterAll(() => pipeline?.[Symbol.asyncDispose]());

test('ClickHouse was emptied: partitions that had committed anything halt, and what Kafka has is stored again', async () => {
  const { running, operate } = pipeline;
  const empty = () => readClickHouse(clickhouseUrl, `DROP DATABASE ${running.database} SYNC`);
  await submitEach(running, 20);
  await pipeline.settledWith(20);
  await running.drained();
  expect(await running.services.writer.stop()).toBe(0);
  await empty();
  const writer = startWriter(running);
  await expectHalted(writer, 'moreoffsets.events/0', /nothing is stored/);
  await eventually(async () => (await operate('status')).output).toMatch(/moreoffsets\.events\/0 .*halted/);
  const { output } = await operate('resume', '--all', '--from', 'oldest');
  expect(output).toMatch(
    /moreoffsets\.events\/0 resumes at offset 0\. Nothing is given up: offsets 0 to \d+ are read again/,
  );
  await resumeAll(pipeline);
  await pipeline.settledWith(0);
  await writer.ready();

  // The same while the writer runs: first the tables are gone, then an operator applies the migrations.
  await running.drained();
  await empty();
  await eventually(() => readiness(writer)).toMatch(/^503 .*cannot be read/);
  await submitEach(running, 10);
  expect(await sluice(running, ['migrations', 'apply'])).toMatchObject({ code: 0 });
  await expectHalted(writer, 'moreoffsets.events/0', /nothing is stored/);
  await resumeAll(pipeline);
  await pipeline.settledWith(10);
  await writer.ready();
});

test('an operator halts a partition while the writer runs, and resumes it where it was', async () => {
  const { running, operate } = pipeline;
  const { writer } = running.services;
  await submitEach(running, 10);
  await pipeline.settledWith(10);
  expect((await operate('halt', '--all')).code).toBe(0);
  // The command ends when running writers have followed.
  expect(await readiness(writer)).toMatch(/by hand/);
  await submitEach(running, 10);
  await pipeline.settledWith(0);
  const resumed = await operate('resume', '--all', '--from', 'stored', '--yes');
  expect(resumed.output).toMatch(/Nothing is given up/);
  await pipeline.settledWith(10);
  await writer.ready();
  expect((await operate('resume', 'moreoffsets.events/1', '--from', 'stored', '--yes')).output).toMatch(
    /is not halted/,
  );
});

test('a writer whose epoch is over, and that has nothing else to store, halts a partition for good', async () => {
  const { running, operate } = pipeline;
  const { writer } = running.services;
  await submitEach(running, 10);
  await pipeline.settledWith(10);
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
  await deleteRecords(kafka, 'moreoffsets.events', 0);
  writer.thaw();
  await expectHalted(writer, 'moreoffsets.events/0', /messages are gone/);
  await until('the halt to be recorded', async () =>
    /moreoffsets\.events\/0 .*halted/.test((await operate('status')).output),
  );
  await resumeAll(pipeline);
  await submitEach(running, 10);
  await pipeline.settledWith(10);
  await writer.ready();
});

import type { LocalKafka } from '@sluice/local-stack/kafka';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { configSchema } from '@sluice/writer/config';
import { afterEach, describe, expect, inject, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { cutOffLog } from '../support/kafka-log.ts';
import { readMetric } from '../support/metrics.ts';
import { type CommandOutcome, operatorOf } from '../support/operator.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { type Service, until } from '../support/service.ts';

vi.setConfig({ testTimeout: 120_000 });

const clickhouseUrl = inject('clickhouseUrl');
let pipeline: Pipeline | undefined;

afterEach(() => pipeline?.stop());

interface Started {
  readonly running: Pipeline;
  readonly operate: (...args: string[]) => Promise<CommandOutcome>;
}

async function start(name: string, kafkaBrokers: readonly string[]): Promise<Started> {
  const env = { KAFKA_PARTITIONS: '2' };
  const running = await startPipeline({ kafkaBrokers, clickhouseUrl, name, env });
  pipeline = running;
  return { running, operate: operatorOf({ kafkaBrokers, clickhouseUrl, name, database: running.database }) };
}

/** Submissions of one event each: so many are spread over both partitions. */
async function submit(running: Pipeline, count: number, event = 'e'): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const body = { foreignUserGroupId: 'g', events: [{ event }] };
    await until('a 202', 30_000, async () => (await running.submit(body)).status === 202);
  }
}

/** Starts the writer without waiting until it is ready, which it is not while a partition is halted. */
function startWriter(running: Pipeline): Service {
  running.services.writer = running.services.writer.again();
  return running.services.writer;
}

async function readiness(writer: Service): Promise<string> {
  const response = await fetch(`${writer.url}/readyz`).catch(() => undefined);
  return response ? `${response.status} ${await response.text()}` : 'no answer';
}

/** Has everything that is halted read from the oldest message. */
async function resumeAll({ operate }: Started): Promise<void> {
  await until('everything to be resumed', 30_000, async () => {
    await operate('resume', '--all', '--from', 'oldest', '--yes');
    return !(await operate('status')).output.includes('halted');
  });
}

/** Waits until a partition is halted for a reason, and the writer says so in every way and lives. */
async function expectHalted(writer: Service, partition: string, why: RegExp): Promise<void> {
  await expect.poll(() => readiness(writer), { timeout: 30_000 }).toMatch(new RegExp(`^503 .*${partition} is halted`));
  expect(await readiness(writer)).toMatch(why);
  expect(await readMetric(writer, 'sluice_writer_halted_partitions')).toBeGreaterThan(0);
  expect((await fetch(`${writer.url}/livez`)).status).toBe(200);
}

const sharedKafka = createKafka(
  loadConfig(configSchema, { KAFKA_BROKERS: inject('kafkaBrokers').join(','), CLICKHOUSE_URL: clickhouseUrl }),
  'test',
  createLogger('test', 'silent'),
);

/** As retention does, all at once. */
async function deleteRecords(topic: string, partition: number): Promise<void> {
  await withAdmin(sharedKafka, async (admin) => {
    const log = (await admin.fetchTopicOffsets(topic)).find((found) => found.partition === partition);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: log?.high ?? '' }] });
  });
}

test('retention has passed what was stored: that partition halts for good, the other goes on, an operator resumes', async () => {
  const { running, operate } = await start('retention', inject('kafkaBrokers'));
  await submit(running, 20);
  await running.settled(20);
  await running.drained();
  expect(await running.services.writer.stop()).toBe(0);
  const offsets = () => withAdmin(sharedKafka, (admin) => admin.fetchTopicOffsets('retention.events'));
  const before = await offsets();
  await submit(running, 20);
  const [from, to] = [before, await offsets()].map((found) => found.find(({ partition }) => partition === 0)?.high);
  const gone = Number(to) - Number(from);
  expect(gone).toBeGreaterThan(0);
  await deleteRecords('retention.events', 0);
  await expectHalted(startWriter(running), 'retention.events/0', /messages are gone/);
  await running.settled(40 - gone);

  expect(await running.services.writer.stop()).toBe(0);
  await submit(running, 20);
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

test('retention passes what a running writer has yet to read: it halts that partition and lives', async () => {
  const { running, operate } = await start('outrun', inject('kafkaBrokers'));
  const { writer } = running.services;
  await submit(running, 4);
  await running.settled(4);
  writer.freeze();
  await submit(running, 20);
  await deleteRecords('outrun.events', 0);
  writer.thaw();
  await expectHalted(writer, 'outrun.events/0', /messages are gone/);
  await resumeAll({ running, operate });
  await writer.ready();
  await submit(running, 10, 'afterwards');
  await until('what came afterwards', 30_000, async () => {
    const { body } = await running.get<{ total: number }>('/events?limit=0&event=afterwards');
    return body.total === 10;
  });
});

test('the topic was made anew: its partitions halt, and an operator has them read from the oldest message', async () => {
  const { running, operate } = await start('anew', inject('kafkaBrokers'));
  await submit(running, 20);
  await running.settled(20);
  expect(await running.services.writer.stop()).toBe(0);
  expect(await running.services['ingest-api'].stop()).toBe(0);
  await withAdmin(sharedKafka, async (admin) => {
    await admin.deleteTopics({ topics: ['anew.events'] });
    await expect.poll(async () => await admin.listTopics()).not.toContain('anew.events');
  });
  await running.restart('ingest-api');
  await submit(running, 40);
  const writer = startWriter(running);
  await expectHalted(writer, 'anew.events/0', /another one|cut off/);
  await resumeAll({ running, operate });
  await running.settled(60);
  await writer.ready();
});

describe('a log whose end was cut off, and that grew again', () => {
  async function withOwnKafka(work: (kafka: LocalKafka, dataDir: string) => Promise<void>): Promise<void> {
    await using folder = await makeTempDir();
    await using kafka = await ownKafka({ dataDir: folder.path });
    await work(kafka, folder.path);
    await pipeline?.stop();
  }

  /** Cuts most of what is stored off the log of one partition. */
  async function cutOff(kafka: LocalKafka, dataDir: string, partition: string): Promise<void> {
    await kafka.kill9();
    expect(await cutOffLog(dataDir, partition, 10)).toBeGreaterThanOrEqual(0);
    await kafka.restart();
  }

  test('while the writer is away: it halts, and once resumed, everything that was accepted is there', async () => {
    await withOwnKafka(async (kafka, dataDir) => {
      const { running, operate } = await start('regrown', kafka.brokers);
      await submit(running, 40);
      await running.settled(40);
      expect(await running.services.writer.stop()).toBe(0);
      await cutOff(kafka, dataDir, 'regrown.events-0');
      await submit(running, 60);
      const writer = startWriter(running);
      await expectHalted(writer, 'regrown.events/0', /the log is another one/);
      await resumeAll({ running, operate });
      await running.settled(100);
      await writer.ready();
    });
  });

  test('while the writer is frozen: it halts, and once resumed, everything that was accepted is there', async () => {
    await withOwnKafka(async (kafka, dataDir) => {
      const { running, operate } = await start('underneath', kafka.brokers);
      const { writer } = running.services;
      await submit(running, 40);
      await running.settled(40);
      await running.drained();
      writer.freeze();
      await cutOff(kafka, dataDir, 'underneath.events-0');
      await submit(running, 60);
      writer.thaw();
      await expectHalted(writer, 'underneath.events/0', /the log is another one|the log was cut off/);
      await resumeAll({ running, operate });
      await running.settled(100);
      await writer.ready();
    });
  });
});

test('an operator halts a partition while the writer runs, and resumes it where it was', async () => {
  const { running, operate } = await start('byhand', inject('kafkaBrokers'));
  const { writer } = running.services;
  await submit(running, 10);
  await running.settled(10);
  expect((await operate('halt', '--all')).code).toBe(0);
  await expectHalted(writer, 'byhand.events/1', /by hand/);
  await submit(running, 10);
  expect((await running.get<{ total: number }>('/events?limit=0')).body.total).toBe(10);
  const resumed = await operate('resume', '--all', '--from', 'stored', '--yes');
  expect(resumed.output).toMatch(/Nothing is given up/);
  await running.settled(20);
  await writer.ready();
  expect((await operate('resume', 'byhand.events/1', '--from', 'stored', '--yes')).output).toMatch(/is not halted/);
});

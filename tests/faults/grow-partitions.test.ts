import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { growPartitions } from '@sluice/cli/writer/grow-partitions';
import { PartitionGrowth } from '@sluice/cli/writer/partition-growth';
import { Partitions } from '@sluice/cli/writer/partitions';
import { findFreePorts } from '@sluice/local-stack/ports';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { QUERY_ACCOUNT, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { configSchema } from '@sluice/writer/config';
import { ConfigResourceTypes } from 'kafkajs';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { submitUntilAccepted } from '../kit/clients.ts';
import { readRows } from '../kit/kafka-rows.ts';
import { operatorOf } from '../kit/operator.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { type Service, type ServiceName, startService } from '../kit/service.ts';
import { startStatementProxy } from '../kit/statement-proxy.ts';
import { uuidInPartition } from '../kit/uuid-in-partition.ts';

// `npm run writer -- grow-partitions N`, run as a process over real engines. The tests of this file build on each other.

const NAME = 'growing';
const EVENTS = 40;
const TOPICS = [`${NAME}.events`, `${NAME}.entities`];
const CLOCK_TOPIC = `${NAME}.clock`;
const options = { kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl'), name: NAME };
const config = loadConfig(configSchema, { KAFKA_BROKERS: options.kafkaBrokers.join(','), CLICKHOUSE_URL: 'http://x' });
const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
const timestamp = new Date().toISOString();

let pipeline: Pipeline;
const others: Service[] = [];

beforeAll(async () => {
  pipeline = await startPipeline({ ...options, env: { KAFKA_PARTITIONS: '2' } });
});
afterAll(async () => {
  await Promise.all(others.map((service) => service.kill9()));
  await pipeline?.stop();
});

function body(first: number, count: number) {
  const events = Array.from({ length: count }, (_, index) => ({
    event: 'e',
    timestamp,
    uuid: `00000000-0000-4000-8000-${String(first + index).padStart(12, '0')}`,
  }));
  return { foreignUserGroupId: 'g', events };
}

async function startWith(name: ServiceName, partitions: number): Promise<Service> {
  const [port = 0] = await findFreePorts(1);
  const env = { ...pipeline.environment, KAFKA_PARTITIONS: String(partitions) };
  const service = startService(name, port, env);
  others.push(service);
  return service;
}

/** Starts the command. @param different what its environment has instead of the pipeline's */
function start(args: readonly string[], different: Readonly<Record<string, string>> = {}) {
  const env = { ...inherited(), ...pipeline.environment, ...different };
  const child = spawn(process.execPath, [programFile('sluice'), 'writer', 'grow-partitions', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, output })) };
}

async function run(...args: string[]) {
  return await start(args).ended;
}

async function inKafka(): Promise<number[]> {
  const { topics } = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics: TOPICS }));
  return TOPICS.map((topic) => topics.find(({ name }) => name === topic)?.partitions.length ?? 0);
}

async function recorded(): Promise<string> {
  const sql = "SELECT arrayStringConcat(arraySort(groupUniqArray(partitions)), ' ') FROM topic_partitions";
  return await readClickHouse(options.clickhouseUrl, sql, { database: pipeline.database });
}

/** Removes what ingest-apis have sent to the topic of the clock, and leaves a record of this age, in milliseconds. */
async function lastSignOfLife(ageMs: number): Promise<void> {
  const stampedBy = (value: string) => ({
    validateOnly: false,
    resources: [
      {
        type: ConfigResourceTypes.TOPIC,
        name: CLOCK_TOPIC,
        configEntries: [{ name: 'message.timestamp.type', value }],
      },
    ],
  });
  await withAdmin(kafka, async (admin) => {
    await admin.alterConfigs(stampedBy('CreateTime'));
    const producer = kafka.producer();
    await producer.connect();
    await producer.send({
      topic: CLOCK_TOPIC,
      messages: [{ key: null, value: '', timestamp: String(Date.now() - ageMs) }],
    });
    await producer.disconnect();
    await admin.alterConfigs(stampedBy('LogAppendTime'));
  });
}

test('while services run, nothing is changed, and every reason is named', async () => {
  expect((await pipeline.submit(body(0, EVENTS))).status).toBe(202);
  await pipeline.settled(EVENTS);
  const { code, output } = await run('4', '--yes');
  expect(code).toBe(1);
  expect(output).toMatch(
    /^Writers are running: the consumer group growing-writer has 1 members\. Stop all writers\.$/m,
  );
  expect(output).toMatch(/^An ingest-api was running \d+ s ago\. Stop all ingest-apis, and wait for 60 s/m);
  expect(output).toMatch(/^Nothing was changed\.$/m);
  expect([await inKafka(), await recorded()]).toEqual([[2, 2], '2']);
});

test('neither with messages that are not stored, nor with a halted partition', async () => {
  const operator = operatorOf({ ...options, database: pipeline.database });
  await pipeline.services.writer.stop();
  const uuid = uuidInPartition(2, (partition) => partition === 1);
  const event = { event: 'e', timestamp, uuid };
  expect((await pipeline.submit({ foreignUserGroupId: 'g', events: [event] })).status).toBe(202);
  await pipeline.services['ingest-api'].stop();
  await operator('halt', `${NAME}.events/0`);
  const { code, output } = await run('4', '--yes');
  expect(code).toBe(1);
  expect(output).not.toContain('Writers are running');
  expect(output).toMatch(/^growing\.events\/0 is halted: by hand\. Resume it/m);
  expect(output).toMatch(/^growing\.events\/1 has messages that are not stored\. Start the writers/m);
  await operator('resume', `${NAME}.events/0`, '--from', 'stored', '--yes');
  await pipeline.restart('writer');
  await pipeline.settled(EVENTS + 1);
  await pipeline.drained();
  await pipeline.services.writer.stop();
});

test('nor until an ingest-api has been silent for a minute', async () => {
  // A busy machine takes seconds to start the command.
  await lastSignOfLife(30_000);
  const early = await run('4', '--yes');
  expect(early.code).toBe(1);
  expect(early.output).toMatch(/^An ingest-api was running [345]\d s ago\./m);
  await lastSignOfLife(61_000);
  const unconfirmed = await run('4');
  expect(unconfirmed.code).toBe(1);
  expect(unconfirmed.output).toMatch(/^growing\.events: rows are spread over 2 partitions, and Kafka has 2$/m);
  expect(unconfirmed.output).toMatch(/Run the command again with --yes\.\nNothing was changed\.$/m);
  expect([await inKafka(), await recorded()]).toEqual([[2, 2], '2']);
});

test('nor when a writer starts while the operator is asked, nor while a partition has no leader', async () => {
  await using client = createClickHouse(
    { ...config, CLICKHOUSE_URL: options.clickhouseUrl, CLICKHOUSE_DATABASE: pipeline.database, ...WRITER_ACCOUNT },
    { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 2 },
  );
  const own = { ...config, KAFKA_TOPIC_PREFIX: `${NAME}.`, KAFKA_GROUP_ID: `${NAME}-writer` };
  const partitions = new Partitions(kafka, client, own.KAFKA_GROUP_ID, TOPICS);
  const growthOf = (listed: Pick<Partitions, 'list'>) =>
    new PartitionGrowth(kafka, own, [
      { name: undefined, groupId: own.KAFKA_GROUP_ID, range: 'all', client, partitions: listed },
    ]);
  // What the list is like then.
  const growth = growthOf({ list: async () => (await partitions.list()).slice(1) });
  expect(await growth.obstacles()).toEqual([`1 partitions of ${NAME}.events have no leader. Mend the brokers.`]);

  const printed: string[] = [];
  const code = await growPartitions({ count: 4, yes: false }, growthOf(partitions), {
    print: (line) => void printed.push(line),
    async confirm() {
      await pipeline.restart('writer');
      return true;
    },
  });
  expect([code, printed.slice(-2)]).toEqual([
    1,
    [expect.stringContaining('Writers are running'), 'Nothing was changed.'],
  ]);
  expect([await inKafka(), await recorded()]).toEqual([[2, 2], '2']);
  await pipeline.services.writer.stop();
});

test('where no writer has stored anything, KAFKA_PARTITIONS is enough', async () => {
  const { config: empty, release } = await createDatabase(options.clickhouseUrl);
  const { code, output } = await start(['4', '--yes'], { CLICKHOUSE_DATABASE: empty.CLICKHOUSE_DATABASE }).ended;
  await release();
  expect([code, output]).toEqual([1, expect.stringContaining('set KAFKA_PARTITIONS=4 for all services instead')]);
});

test('a command that failed or was killed half-way is completed by the next one, and no writer stores before', async () => {
  // A run of an account that may not record it ends half-way as well.
  const failed = await start(['4', '--yes'], QUERY_ACCOUNT).ended;
  expect(failed.code).toBe(1);
  for (const topic of TOPICS) expect(failed.output).toContain(`${topic} has 4 partitions in Kafka now`);
  expect(failed.output).toMatch(
    /^This failed: .*necessary to have the grant INSERT.*\nWhat is named above is changed/m,
  );
  expect([await inKafka(), await recorded()]).toEqual([[4, 4], '2']);
  for (const statement of ['record-grown-topics', 'forget-smaller-topics']) {
    const reached = Promise.withResolvers<void>();
    await using proxy = await startStatementProxy(options.clickhouseUrl, async (name, moment) => {
      if (name !== statement || moment !== 'before') return;
      reached.resolve();
      await new Promise(() => undefined);
    });
    const { child, ended } = start(['4', '--yes'], { CLICKHOUSE_URL: proxy.url });
    await Promise.race([reached.promise, ended.then(({ output }) => Promise.reject(new Error(output)))]);
    child.kill('SIGKILL');
    expect((await ended).code).toBeNull();
    expect(await inKafka()).toEqual([4, 4]);
    const isRecorded = statement === 'forget-smaller-topics';
    expect(await recorded()).toBe(isRecorded ? '2 4' : '2');
    for (const partitions of isRecorded ? [2, 4] : [4]) {
      const writer = await startWith('writer', partitions);
      expect(await writer.endsItself()).toBe(1);
      expect(writer.log()).toMatch(/were spread over \d partitions, and KAFKA_PARTITIONS is \d/);
    }
  }
  const { code, output } = await run('4', '--yes');
  expect([code, output]).toEqual([0, expect.stringContaining('Set KAFKA_PARTITIONS=4 for all services')]);
  expect(await recorded()).toBe('4');
});

test('one that was interrupted between the topics as well', async () => {
  await withAdmin(kafka, (admin) =>
    admin.createPartitions({ topicPartitions: [{ topic: `${NAME}.events`, count: 6 }] }),
  );
  const { code, output } = await run('6', '--yes');
  expect(code).toBe(0);
  expect(output).not.toMatch(/^growing\.events has 6 partitions in Kafka now$/m);
  expect(output).toMatch(/^growing\.entities has 6 partitions in Kafka now$/m);
  expect([await inKafka(), await recorded()]).toEqual([[6, 6], '6']);
});

test('fewer partitions, or a number that is none, are refused', async () => {
  expect(await run('4', '--yes')).toMatchObject({ code: 1, output: expect.stringContaining('can only grow') });
  expect(await run('6', '--yes')).toMatchObject({ code: 0, output: expect.stringContaining('Nothing was changed') });
  for (const argument of ['x', '1', '1001', '4.5']) {
    expect(await run(argument)).toMatchObject({ code: 2, output: expect.stringContaining('from 2 to 1000') });
  }
  expect((await run()).code).toBe(2);
});

test('an event that is sent before and after the growth is stored once', async () => {
  const ingest = await startWith('ingest-api', 6);
  const writer = await startWith('writer', 6);
  await Promise.all([ingest.ready(), writer.ready()]);
  await submitUntilAccepted(body(0, 2 * EVENTS), { url: ingest.url, key: pipeline.key });
  await pipeline.drained();
  await pipeline.settled(2 * EVENTS + 1);
  const rows = await readRows(options.kafkaBrokers, `${NAME}.events`, (found) => found.length > 3 * EVENTS);
  const used = new Set(rows.map(({ partition }) => partition));
  expect([...used].some((partition) => partition >= 4)).toBe(true);
});

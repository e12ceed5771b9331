import { growPartitions } from '@sluice/cli/writer/grow-partitions';
import { PartitionGrowth } from '@sluice/cli/writer/partition-growth';
import { Partitions } from '@sluice/cli/writer/partitions';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { QUERY_ACCOUNT, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { loadConfig } from '@sluice/shared/config';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { configSchema } from '@sluice/writer/config';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { GrowingPipeline, numberedEvents } from '../kit/growing-pipeline.ts';
import { operatorOf } from '../kit/operator.ts';
import { uuidInPartition } from '../kit/uuid-in-partition.ts';

// The tests of this file build on each other.

const NAME = 'regrowing';
const EVENTS = 40;
const options = { kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl'), name: NAME };
const config = loadConfig(configSchema, { KAFKA_BROKERS: options.kafkaBrokers.join(','), CLICKHOUSE_URL: 'http://x' });

let growing: GrowingPipeline;

beforeAll(async () => {
  growing = await GrowingPipeline.start(options);
});
afterAll(() => growing?.[Symbol.asyncDispose]());

test('nothing is changed with messages that are not stored, or with a halted partition', async () => {
  const operator = operatorOf({ ...options, database: growing.running.database });
  expect((await growing.running.submit(numberedEvents(0, EVENTS))).status).toBe(202);
  await growing.running.settled(EVENTS);
  await growing.running.services.writer.stop();
  const uuid = uuidInPartition(2, (partition) => partition === 1);
  const event = { event: 'e', uuid };
  expect((await growing.running.submit({ foreignUserGroupId: 'g', events: [event] })).status).toBe(202);
  await growing.running.services['ingest-api'].stop();
  await operator('halt', `${NAME}.events/0`);
  const { code, output } = await growing.run('4', '--yes');
  expect(code).toBe(1);
  expect(output).not.toContain('Writers are running');
  expect(output).toMatch(/^regrowing\.events\/0 is halted: by hand\. Resume it/m);
  expect(output).toMatch(/^regrowing\.events\/1 has messages that are not stored\. Start the writers/m);
  await operator('resume', `${NAME}.events/0`, '--from', 'stored', '--yes');
  await growing.running.restart('writer');
  await growing.running.settled(EVENTS + 1);
  await growing.running.drained();
  await growing.running.services.writer.stop();
});

test('nor until an ingest-api has been silent for a minute', async () => {
  // A busy machine takes seconds to start the command.
  await growing.lastSignOfLife(30_000);
  const early = await growing.run('4', '--yes');
  expect(early.code).toBe(1);
  expect(early.output).toMatch(/^An ingest-api was running [345]\d s ago\./m);
  await growing.lastSignOfLife(61_000);
  const unconfirmed = await growing.run('4');
  expect(unconfirmed.code).toBe(1);
  expect(unconfirmed.output).toMatch(/^regrowing\.events: rows are spread over 2 partitions, and Kafka has 2$/m);
  expect(unconfirmed.output).toMatch(/Run the command again with --yes\.\nNothing was changed\.$/m);
  expect([await growing.inKafka(), await growing.recorded()]).toEqual([[2, 2], '2']);
});

test('nor when a writer starts while the operator is asked, nor while a partition has no leader', async () => {
  await using client = createClickHouse(
    {
      ...config,
      CLICKHOUSE_URL: options.clickhouseUrl,
      CLICKHOUSE_DATABASE: growing.running.database,
      ...WRITER_ACCOUNT,
    },
    { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 2 },
  );
  const own = { ...config, KAFKA_TOPIC_PREFIX: `${NAME}.`, KAFKA_GROUP_ID: `${NAME}-writer` };
  const partitions = new Partitions(growing.kafka, client, own.KAFKA_GROUP_ID, growing.topics);
  const growthOf = (listed: Pick<Partitions, 'list'>) =>
    new PartitionGrowth(growing.kafka, own, [
      { name: undefined, groupId: own.KAFKA_GROUP_ID, range: 'all', client, partitions: listed },
    ]);
  // What the list is like then.
  const growth = growthOf({ list: async () => (await partitions.list()).slice(1) });
  expect(await growth.obstacles()).toEqual([`1 partitions of ${NAME}.events have no leader. Mend the brokers.`]);

  const printed: string[] = [];
  const code = await growPartitions({ count: 4, yes: false }, growthOf(partitions), {
    print: (line) => void printed.push(line),
    async confirm() {
      await growing.running.restart('writer');
      return true;
    },
  });
  expect([code, printed.slice(-2)]).toEqual([
    1,
    [expect.stringContaining('Writers are running'), 'Nothing was changed.'],
  ]);
  expect([await growing.inKafka(), await growing.recorded()]).toEqual([[2, 2], '2']);
  await growing.running.services.writer.stop();
});

test('where no writer has stored anything, KAFKA_PARTITIONS is enough', async () => {
  const { config: empty, release } = await createDatabase(options.clickhouseUrl);
  const { code, output } = await growing.start(['4', '--yes'], { CLICKHOUSE_DATABASE: empty.CLICKHOUSE_DATABASE })
    .ended;
  await release();
  expect([code, output]).toEqual([1, expect.stringContaining('set KAFKA_PARTITIONS=4 for all services instead')]);
});

test('a command that failed or was killed half-way is completed by the next one, and no writer stores before', async () => {
  // A run of an account that may not record it ends half-way as well.
  const failed = await growing.start(['4', '--yes'], QUERY_ACCOUNT).ended;
  expect(failed.code).toBe(1);
  for (const topic of growing.topics) expect(failed.output).toContain(`${topic} has 4 partitions in Kafka now`);
  expect(failed.output).toMatch(
    /^This failed: .*necessary to have the grant INSERT.*\nWhat is named above is changed/m,
  );
  expect([await growing.inKafka(), await growing.recorded()]).toEqual([[4, 4], '2']);
  expect(await growing.killBefore('forget-smaller-topics', [2, 4])).toBe('2 4');
  const { code, output } = await growing.run('4', '--yes');
  expect([code, output]).toEqual([0, expect.stringContaining('Set KAFKA_PARTITIONS=4 for all services')]);
  expect(await growing.recorded()).toBe('4');
});

test('one that was interrupted between the topics as well', async () => {
  await withAdmin(growing.kafka, (admin) =>
    admin.createPartitions({ topicPartitions: [{ topic: `${NAME}.events`, count: 6 }] }),
  );
  const { code, output } = await growing.run('6', '--yes');
  expect(code).toBe(0);
  expect(output).not.toMatch(/^regrowing\.events has 6 partitions in Kafka now$/m);
  expect(output).toMatch(/^regrowing\.entities has 6 partitions in Kafka now$/m);
  expect([await growing.inKafka(), await growing.recorded()]).toEqual([[6, 6], '6']);
});

test('fewer partitions, or a number that is none, are refused', async () => {
  expect(await growing.run('4', '--yes')).toMatchObject({ code: 1, output: expect.stringContaining('can only grow') });
  expect(await growing.run('6', '--yes')).toMatchObject({
    code: 0,
    output: expect.stringContaining('Nothing was changed'),
  });
  for (const argument of ['x', '1', '1001', '4.5']) {
    expect(await growing.run(argument)).toMatchObject({ code: 2, output: expect.stringContaining('from 2 to 1000') });
  }
  expect((await growing.run()).code).toBe(2);
});

import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { DeadLetters } from '@sluice/storage/dead-letters';
import kafkajs, { type Kafka } from 'kafkajs';
import { expect, inject, onTestFinished, test } from 'vitest';
import { type DeadLettersConfig, deadLettersConfig, parse, runDeadLettersCommand } from './dead-letters-command.ts';

/** Would clear the screen, rename the window, write from right to left, and end the line. */
const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u009b31m\u202egnp.exe\u2028\u007f\r\u0000';

// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys these
const OBEYED = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

interface Table extends AsyncDisposable {
  readonly config: DeadLettersConfig;
  readonly client: ClickHouseClient;
  readonly kafka: Kafka;
  readonly deadLetters: DeadLetters;
  readonly topics: { readonly events: string; readonly entities: string };
  insert(...rows: readonly object[]): Promise<void>;
  /** Runs the command, and returns its exit code and what it prints. */
  run(args: readonly string[], deadLetters?: DeadLetters): Promise<{ code: number; output: string[] }>;
  /** Returns the ids of those that were not replayed, in order. */
  waiting(): Promise<string[]>;
}

/** Creates an empty table of dead letters. */
async function createTable(): Promise<Table> {
  const database = await takeDatabase(inject('clickhouseUrl'));
  const config = loadConfig(deadLettersConfig, {
    ...database.config,
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    KAFKA_TOPIC_PREFIX: `dead-letters-${randomUUID()}.`,
  });
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const deadLetters = new DeadLetters(config, client, kafka);
  return {
    ...{ config, client, kafka, deadLetters },
    topics: topicNames(config),
    insert: async (...values) => {
      await client.insert({ table: 'dead_letters', values, format: 'JSONEachRow' });
    },
    run: async (args, other = deadLetters) => {
      const output: string[] = [];
      const code = await runDeadLettersCommand(parse(args), other, (line) => output.push(line));
      return { code, output };
    },
    waiting: async () => (await deadLetters.list({ limit: 10_000, replayed: false })).map(({ id }) => id).sort(),
    async [Symbol.asyncDispose]() {
      await client.close();
      await database.release();
    },
  };
}

/** A dead letter as the writer stores it. */
function deadLetter(id: string, fields: Readonly<Record<string, unknown>> = {}) {
  return {
    id,
    kind: 'events',
    format: '1',
    topic: 't',
    partition: 0,
    offset: 7,
    line: 0,
    reason: 'r',
    row: id,
    ...fields,
  };
}

/** The beginning of a day, as ClickHouse reads it. */
function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

/** A call of the batch route that ingest-api rejected. */
function rejected(id: string, call: string) {
  return deadLetter(id, {
    kind: 'rejected',
    row: JSON.stringify({ workspace_id: 'a', call, reason: 'r', received_at: 1_700_000_000_000_000 }),
  });
}

test('control characters in any field of a dead letter reach the terminal only escaped', async () => {
  await using table = await createTable();
  const text = (name: string) => `${name} ${HOSTILE}`;
  const hostile = deadLetter(text('id'), {
    kind: text('kind'),
    format: text('format'),
    topic: text('topic'),
    reason: text('reason'),
    row: text('row'),
  });
  await table.insert(hostile);
  const output = async (...args: string[]) => (await table.run(args)).output;

  const shown = await output('show', hostile.id);
  const listed = await output('list');
  const unknown = await output('show', HOSTILE);
  for (const line of [...shown, ...listed, ...unknown]) expect(line).not.toMatch(OBEYED);
  for (const name of ['id', 'kind', 'format', 'topic', 'reason', 'row']) {
    expect(shown.filter((line) => line.includes(`${name} \\u001b[2J`))).toHaveLength(1);
  }
  for (const name of ['id', 'kind', 'topic', 'reason']) expect(listed[0]).toContain(`${name} \\u001b[2J`);
});

test('what cannot be replayed is named with the reason, and does not stop the others', async () => {
  await using table = await createTable();
  const { topics, kafka } = table;
  const numPartitions = 3;
  const created = Object.values(topics).map((topic) => ({ topic, numPartitions }));
  await createTopics(kafka, created);
  const track = '{"type":"track","event":"e","userId":"u","properties":{"a":1}}';
  // The newest come first.
  await table.insert(
    { ...rejected('malformed', `{"type":"track","p":"${'x'.repeat(1_000)}","a" tru}`), recorded_at: daysAgo(1) },
    { ...rejected('deep', `{"a":${'['.repeat(5_000)}${']'.repeat(5_000)}}`), recorded_at: daysAgo(2) },
    { ...deadLetter('no-row', { kind: 'rejected' }), recorded_at: daysAgo(3) },
    { ...deadLetter('no-topic', { topic: `${topics.events}.gone` }), recorded_at: daysAgo(4) },
    { ...deadLetter('no-partition', { topic: topics.events, partition: 99 }), recorded_at: daysAgo(5) },
    { ...deadLetter('row', { topic: topics.events, partition: 1 }), recorded_at: daysAgo(6) },
    { ...rejected('call', track), recorded_at: daysAgo(7) },
  );
  const { code, output } = await table.run(['replay', '--all']);
  expect([code, output]).toEqual([
    1,
    [
      'malformed cannot be taken: The call is not JSON.',
      'deep cannot be taken: The call is nested deeper than 32 levels.',
      'no-row cannot be taken: The row is no rejected call.',
      expect.stringMatching(/^no-topic was not replayed: ./),
      expect.stringMatching(/^no-partition was not replayed: ./),
      '2 replayed, 5 not',
    ],
  ]);
  expect(await table.waiting()).toEqual(['deep', 'malformed', 'no-partition', 'no-row', 'no-topic']);
  const offsets = await withAdmin(kafka, (admin) => admin.fetchTopicOffsets(topics.events));
  expect(offsets.map(({ high }) => Number(high)).reduce((sum, high) => sum + high)).toBe(2);
});

test('replay --all reaches every dead letter when more than a page of them fail again, and ends', async () => {
  await using table = await createTable();
  const ids = Array.from({ length: 1_203 }, (_, index) => `id-${index}`);
  // All of them at once, as a batch stores them: the order within a millisecond is that of their ids.
  await table.insert(...ids.map((id) => deadLetter(id)));
  const reached: string[] = [];
  // In place of Kafka and the writer: every row fails again at once, which is recorded when the command has a page of them.
  class Failing extends DeadLetters {
    override async replay(id: string): Promise<boolean> {
      reached.push(id);
      if (reached.length % 1_000 === 0) await table.insert(...reached.map((again) => deadLetter(again)));
      return true;
    }
  }
  const failing = new Failing(table.config, table.client, table.kafka);
  const { code, output } = await table.run(['replay', '--all'], failing);
  expect(reached.toSorted()).toEqual(ids.toSorted());
  expect([code, output]).toEqual([0, ['1000 replayed', '1203 replayed']]);
});

test('replaying ends when an engine is away', async () => {
  await using table = await createTable();
  await table.insert(deadLetter('one'), deadLetter('other'));
  const nowhere = new kafkajs.Kafka({
    brokers: ['127.0.0.1:9'],
    retry: { retries: 0 },
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const deadLetters = new DeadLetters(table.config, table.client, nowhere);
  await expect(table.run(['replay', '--all'], deadLetters)).rejects.toThrow(/connect/i);
  expect(await table.waiting()).toEqual(['one', 'other']);
});

test('a message that could not be read stays the same dead letter when it is replayed', async () => {
  await using table = await createTable();
  const { topics, kafka } = table;
  await createTopics(kafka, [{ topic: topics.events }]);
  const value = '{"a":1}\n{"b":2}\n';
  await table.insert(deadLetter('message', { topic: topics.events, format: '2', row: value }));
  expect(await table.run(['replay', 'message'])).toMatchObject({ code: 0 });
  const consumer = kafka.consumer({ groupId: randomUUID() });
  onTestFinished(() => consumer.disconnect());
  await consumer.connect();
  await consumer.subscribe({ topic: topics.events, fromBeginning: true });
  const { promise, resolve } = Promise.withResolvers<string>();
  await consumer.run({ eachMessage: async ({ message }) => resolve(String(message.value)) });
  expect(await promise).toBe(value);
});

test('rejected calls are forgotten after 30 days, and rows that were accepted never', async () => {
  await using table = await createTable();
  const [old, recent] = [daysAgo(32), daysAgo(28)];
  await table.insert(
    { ...rejected('old-call', '{}'), recorded_at: old },
    { ...rejected('recent-call', '{}'), recorded_at: recent },
    { ...deadLetter('old-row'), recorded_at: old },
    { ...deadLetter('old-message', { kind: '', format: '' }), recorded_at: old },
  );
  await mergeParts(table.client, 'dead_letters');
  expect(await table.waiting()).toEqual(['old-message', 'old-row', 'recent-call']);
});

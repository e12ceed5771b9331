import { randomUUID } from 'node:crypto';
import {
  type DeadLettersConfig,
  deadLettersConfig,
  parse,
  runDeadLettersCommand,
} from '@sluice/cli/dead-letters/dead-letters-command';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { messageHeaders } from '@sluice/shared/rows';
import { until } from '@sluice/shared/testing/until';
import { DeadLetters } from '@sluice/storage/dead-letters';
import type { Kafka } from 'kafkajs';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { expectBalanced, sumsOf } from '../kit/audit.ts';
import { readMetric } from '../kit/metrics.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { EventPage } from '../kit/records.ts';

let pipeline: Pipeline;
let config: DeadLettersConfig;
let kafka: Kafka;
let deadLetters: DeadLetters;
let client: ReturnType<typeof createClickHouse>;

beforeAll(async () => {
  const [kafkaBrokers, clickhouseUrl] = [inject('kafkaBrokers'), inject('clickhouseUrl')];
  pipeline = await startPipeline({ kafkaBrokers, clickhouseUrl, name: 'poison' });
  config = loadConfig(deadLettersConfig, {
    KAFKA_BROKERS: kafkaBrokers.join(','),
    CLICKHOUSE_URL: clickhouseUrl,
    CLICKHOUSE_DATABASE: pipeline.database,
  });
  kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  client = createClickHouse(config, { application: 'test', requestTimeoutMs: 10_000, connectionsMax: 1 });
  deadLetters = new DeadLetters(config, client, kafka);
});
afterAll(async () => {
  await client?.close();
  await pipeline?.stop();
});

/** Sends lines to Kafka as they are, which ingest-api would not. */
async function produce(lines: readonly string[], headers = messageHeaders('events'), partition = 1): Promise<void> {
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const value = `${lines.join('\n')}\n`;
  await producer.send({ topic: 'poison.events', acks: -1, messages: [{ value, headers, partition }] });
  await producer.disconnect();
}

function row(event: string): string {
  const now = Date.now();
  return JSON.stringify({ workspace_id: 'test', timestamp: now, uuid: randomUUID(), event, received_at: now * 1_000 });
}

async function command(...args: string[]): Promise<{ code: number; output: string }> {
  const lines: string[] = [];
  const code = await runDeadLettersCommand(parse(args), deadLetters, (line) => lines.push(line));
  return { code, output: lines.join('\n') };
}

const total = async () => (await pipeline.get<EventPage>('/events?limit=0')).body.total;

test('poison does not hold up what came with it, before it or after it, and is kept', async () => {
  await pipeline.submit({ foreignUserGroupId: 'g', events: [{ event: 'before' }] });
  await produce([row('good'), 'poison', row('good'), '{"workspace_id":"test"}']);
  await produce(['?'], { kind: 'events', format: '99' });
  await pipeline.submit({ foreignUserGroupId: 'g', events: [{ event: 'after' }] });
  await pipeline.settled(4);
  // Partitions are stored in no certain order.
  await pipeline.drained();
  const { output } = await command('list');
  expect(output).toMatch(/3 dead letters$/);
  expect(output).toMatch(/poison\.events\/1@\d+:1 .*NOT_AN_OBJECT/);
  expect(output).toMatch(/the format is not 1/);
  const metrics = await (await fetch(`${pipeline.services.writer.url}/metrics`)).text();
  expect(metrics).toMatch(/sluice_writer_dead_letters_total 3/);
});

test('a dead letter can be shown and replayed; one that fails again is the same dead letter', async () => {
  const [deadLetter] = (await deadLetters.list({ limit: 10, replayed: false })).filter(({ line }) => line === 1);
  const id = deadLetter?.id ?? '';
  expect((await command('show', id)).output).toMatch(/row {10}"poison"/);
  expect(await command('replay', id)).toEqual({ code: 0, output: `${id} replayed` });
  const again = await until('it to have failed again', async () => {
    const found = await deadLetters.read(id);
    return found?.deadLetter.replayedAt === null && found.deadLetter.offset !== deadLetter?.offset
      ? found.deadLetter
      : undefined;
  });
  expect([again.topic, again.partition]).toEqual(['poison.events', 1]);
  expect((await command('list')).output).toMatch(/3 dead letters$/);
  expect((await command('show', 'unknown')).code).toBe(1);
});

test('a dead letter that fails again before its replay is noted is listed', async () => {
  const listed = await deadLetters.list({ limit: 10, replayed: false });
  const deadLetter = listed.find(({ reason }) => reason.startsWith('NOT_AN_OBJECT'));
  const id = deadLetter?.id ?? '';
  const slowClient: typeof client = Object.assign(Object.create(client), {
    async command(...args: Parameters<typeof client.command>) {
      await until(
        'it to have failed again',
        async () => (await deadLetters.read(id))?.deadLetter.offset !== deadLetter?.offset,
      );
      return await client.command(...args);
    },
  });
  expect(await new DeadLetters(config, slowClient, kafka).replay(id)).toBe(true);
  expect((await command('list')).output).toMatch(/3 dead letters$/);
});

test('once the reason is gone, a replay stores the row of a dead letter, and a second replay changes nothing', async () => {
  const mended = row('mended');
  const deadLetter = {
    id: 'mended',
    kind: 'events',
    format: '1',
    topic: 'poison.events',
    partition: 1,
    offset: 0,
    line: 0,
    reason: 'gone',
    row: mended,
  };
  await client.insert({ table: 'dead_letters', values: [deadLetter], format: 'JSONEachRow' });
  expect((await command('replay', 'mended')).code).toBe(0);
  await pipeline.settled(5);
  expect((await command('list')).output).not.toContain('mended');
  expect((await command('list', '--all')).output).toContain('mended');
  expect((await command('replay', 'mended')).code).toBe(0);
  await pipeline.drained();
  expect(await total()).toBe(5);
});

test('when most rows cannot be stored, all are kept, the alarm is on, and good rows behind them are stored', async () => {
  const { writer } = pipeline.services;
  await produce(Array.from({ length: 500 }, (_, index) => `poison all the way ${index}`));
  for (let index = 0; index < 30; index += 1) {
    expect((await pipeline.submit({ foreignUserGroupId: 'g', events: [{ event: 'behind' }] })).status).toBe(202);
  }
  await pipeline.settled(35);
  await pipeline.drained();
  expect((await command('list', '--limit', '1000')).output).toMatch(/503 dead letters$/);
  expect(writer.log()).toMatch(/rows could not be stored/);
  expect(await readMetric(writer, 'sluice_writer_dead_letter_alarm')).toBe(1);
  const ready = await fetch(`${writer.url}/readyz`);
  expect([ready.status, await ready.text()]).toEqual([
    503,
    expect.stringMatching(/50\d of the last \d+ rows could not be stored/),
  ]);
  expect((await fetch(`${writer.url}/livez`)).status).toBe(200);
  const books = await expectBalanced(pipeline);
  expect(sumsOf(books, 'events')).toMatchObject({ stored: 35, dead_letters: 505 });
});

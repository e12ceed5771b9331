import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { createLogger } from '../base/log.ts';
import { kafkaEnv, loadConfig } from '../config/config.ts';
import { createKafka } from './client.ts';
import { ensureTopics, withAdmin } from './topics.ts';

interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly error?: string;
}

/** Nobody has to look at these. */
const QUIET: readonly string[] = ['debug', 'info'];

function collectLog(): { readonly lines: LogLine[]; readonly destination: Writable } {
  const lines: LogLine[] = [];
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    lines.push(
      ...chunk
        .toString()
        .trim()
        .split('\n')
        .map((line): LogLine => JSON.parse(line)),
    );
    done();
  };
  return { lines, destination: new Writable({ write }) };
}

function configOf(brokers: readonly string[], prefix: string) {
  return loadConfig(z.object(kafkaEnv), { KAFKA_BROKERS: brokers.join(','), KAFKA_TOPIC_PREFIX: prefix });
}

test('a first start warns of nothing: topics are missing, two services create them, leaders are elected', async () => {
  const { lines, destination } = collectLog();
  const config = configOf(inject('kafkaBrokers'), `first-start-${randomUUID()}.`);
  const kafkas = ['ingest-api', 'writer'].map((name) =>
    createKafka(config, name, createLogger(name, 'debug', destination)),
  );
  await Promise.all(kafkas.map((kafka) => ensureTopics(kafka, config)));
  kafkas[0]?.producer();

  expect(lines.filter(({ level }) => !QUIET.includes(level))).toEqual([]);
  expect(lines.map(({ error }) => error)).toContain('This server does not host this topic-partition');
  expect(lines.map(({ error }) => error)).toContain('Topic creation errors');
  expect(lines.map(({ msg }) => msg)).toContainEqual(expect.stringContaining('partitioner'));
});

test('an error that no first start explains is a warning', async () => {
  const { lines, destination } = collectLog();
  const config = configOf(inject('kafkaBrokers'), 'unused.');
  const kafka = createKafka(config, 'test', createLogger('test', 'debug', destination));
  const topics = [{ topic: 'not a valid name', numPartitions: 1 }];
  await expect(
    withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics: ['not a valid name'] })),
  ).rejects.toThrow();
  await expect(withAdmin(kafka, (admin) => admin.createTopics({ topics }))).rejects.toThrow();
  expect(
    lines.filter(({ level }) => !QUIET.includes(level)).map(({ msg, error }) => [msg.split('(')[0], error]),
  ).toContainEqual(['Response Metadata', 'The request attempted to perform an operation on an invalid topic']);
});

test('a client that has nothing to do sets no timer again and again', async () => {
  const kafka = createKafka(configOf(inject('kafkaBrokers'), 'unused.'), 'test', createLogger('test', 'silent'));
  await withAdmin(kafka, async (admin) => {
    await admin.listTopics();
    const setTimer = vi.spyOn(globalThis, 'setTimeout');
    onTestFinished(() => setTimer.mockRestore());
    await delay(200);
    // Unpatched, kafkajs looks for requests that wait, after less than no time.
    expect(setTimer.mock.calls.filter(([, delayMs = 0]) => delayMs < 0)).toEqual([]);
  });
});

test('a broker that cannot be reached is a warning', async () => {
  const { lines, destination } = collectLog();
  const kafka = createKafka(configOf(['127.0.0.1:1'], ''), 'test', createLogger('test', 'debug', destination));
  await expect(kafka.admin({ retry: { retries: 0 } }).connect()).rejects.toThrow();
  expect(lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg)).toContainEqual(
    expect.stringContaining('ECONNREFUSED'),
  );
});

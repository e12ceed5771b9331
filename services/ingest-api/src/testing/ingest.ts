import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { topicNames } from '@sluice/shared/kafka/topics';
import { hashKey, type KeyEntry, readKeysFile, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { until } from '@sluice/shared/testing/until';
import type { FastifyInstance } from 'fastify';
import type { Consumer } from 'kafkajs';
import { Registry } from 'prom-client';
import { configSchema } from '../config.ts';
import { createIngest } from '../serve.ts';

/** A message of rows as it is stored in Kafka. */
export interface StoredMessage {
  readonly topic: string;
  readonly partition: number;
  readonly kind: string;
  readonly rows: readonly Record<string, unknown>[];
}

/** The server that the service runs, over a real Kafka, with the keys `all`, `ingest-only` and `query-only`. */
export interface Ingest {
  readonly app: FastifyInstance;
  /** What it has logged as a warning or an error. */
  readonly warnings: readonly string[];
  /** Puts a key into the keys file, or changes it there. Its id is the key itself. It is in force within a second. */
  setKey(id: string, entry?: Partial<KeyEntry>): Promise<void>;
  /** Reads until the topic has shown `count` rows, and returns all its messages so far. */
  read(topic: 'events' | 'entities', count: number): Promise<StoredMessage[]>;
  stop(): Promise<void>;
}

export async function startIngest(
  brokers: readonly string[],
  env: Readonly<Record<string, string>> = {},
  { waitUntilReady = true } = {},
): Promise<Ingest> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-ingest-'));
  const keysFile = join(folder, 'keys.json');
  const setKey: Ingest['setKey'] = async (id, entry) => {
    const others = (await readKeysFile(keysFile)).filter((key) => key.id !== id);
    const key: KeyEntry = { id, hash: hashKey(id), workspace: 'test', scopes: ['ingest', 'delete'], ...entry };
    await writeKeysFile(keysFile, [...others, key]);
  };
  await setKey('all', { scopes: ['ingest', 'query', 'delete', 'admin'] });
  await setKey('deleter', { scopes: ['ingest', 'delete'] });
  await setKey('ingest-only', { scopes: ['ingest'] });
  await setKey('query-only', { scopes: ['query'] });
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: brokers.join(','),
    KAFKA_TOPIC_PREFIX: `ingest-${randomUUID()}.`,
    API_KEYS_FILE: keysFile,
    KAFKA_PARTITIONS: '3',
    ...env,
  });
  const warnings: string[] = [];
  const logger = createLogger('ingest-api', 'warn', collectMessages(warnings));
  const { app, kafka, readiness, components } = createIngest(config, {
    logger,
    registry: new Registry(),
  });
  for (const component of components) await component.start();
  await app.ready();
  if (waitUntilReady) await until('it to be ready', async () => (await readiness()).length === 0);

  const messages: StoredMessage[] = [];
  let consumer: Consumer | undefined;

  async function consume(): Promise<void> {
    consumer = kafka.consumer({ groupId: `test-${randomUUID()}`, maxWaitTimeInMs: 50 });
    await consumer.connect();
    await consumer.subscribe({ topics: Object.values(topicNames(config)), fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ topic, partition, message: { value, headers } }) => {
        const lines = String(value).trimEnd().split('\n');
        const rows = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
        messages.push({ topic, partition, kind: String(headers?.['kind']), rows });
      },
    });
  }

  return {
    app,
    warnings,
    setKey,
    async read(topic, count) {
      if (!consumer) await consume();
      const name = topicNames(config)[topic];
      const found = () => messages.filter((message) => message.topic === name);
      await until(`${count} rows of ${name}`, async () => found().flatMap(({ rows }) => rows).length >= count);
      return found();
    },
    async stop() {
      await app.close();
      await consumer?.disconnect();
      for (const component of components.toReversed()) await component.stop();
      await rm(folder, { recursive: true });
    },
  };
}

/** A destination of a log that puts the message of each line into `messages`. */
function collectMessages(messages: string[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of String(chunk).trim().split('\n')) messages.push(String(JSON.parse(line).msg));
      done();
    },
  });
}

/** Posts a value as JSON, or a text or Buffer as it is. */
export async function post(
  app: FastifyInstance,
  body: unknown,
  { key = 'all', path = '/v1/public/userGroups', headers = {} } = {},
) {
  return await app.inject({
    method: 'POST',
    url: path,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
}

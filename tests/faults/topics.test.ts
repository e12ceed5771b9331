import { findFreePorts } from '@sluice/local-stack/ports';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { clockTopicName, ensureTopics, topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import { configSchema } from '@sluice/writer/config';
import kafkajs, { type Kafka } from 'kafkajs';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { submitUntilAccepted } from '../kit/clients.ts';
import { ownKafka } from '../kit/engines.ts';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { type KafkaProxy, startKafkaProxy } from '../kit/kafka-proxy.ts';
import { readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startService } from '../kit/service.ts';

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs;

/** The API key of a CreateTopics request in Kafka's protocol. */
const CREATE_TOPICS = 19;

const started = new AsyncDisposableStack();
let proxy: KafkaProxy;
let createRequests = 0;

beforeAll(async () => {
  const [port = 0] = await findFreePorts(1);
  proxy = await startKafkaProxy(port, (api) => {
    if (api === CREATE_TOPICS) createRequests += 1;
    return 'deliver';
  });
  started.use(proxy);
  const settings = {
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'allow.everyone.if.no.acl.found': true,
  };
  started.use(await ownKafka({ ports: [port], advertisedPorts: [proxy.port], settings }));
});
afterAll(() => started.disposeAsync());

function clientFor(prefix: string, partitions: number) {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: `127.0.0.1:${proxy.port}`,
    KAFKA_TOPIC_PREFIX: `${prefix}.`,
    KAFKA_PARTITIONS: String(partitions),
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  return { config, kafka: createKafka(config, 'test', createLogger('test', 'silent')) };
}

/** Forbids everybody to create topics whose names begin with one of the prefixes, and allows all else. */
async function forbidCreating(kafka: Kafka, ...prefixes: readonly string[]): Promise<void> {
  const { LITERAL, PREFIXED } = ResourcePatternTypes;
  const resources = [
    { resourceType: AclResourceTypes.CLUSTER, resourceName: 'kafka-cluster', resourcePatternType: LITERAL },
    ...prefixes.map((resourceName) => ({
      resourceType: AclResourceTypes.TOPIC,
      resourceName,
      resourcePatternType: PREFIXED,
    })),
  ];
  const rules = [
    { operation: AclOperationTypes.ALL, permissionType: AclPermissionTypes.ALLOW },
    { operation: AclOperationTypes.CREATE, permissionType: AclPermissionTypes.DENY },
  ];
  const everybody = { principal: 'User:*', host: '*' };
  const acl = resources.flatMap((resource) => rules.map((rule) => ({ ...everybody, ...resource, ...rule })));
  await withAdmin(kafka, (admin) => admin.createAcls({ acl }));
}

/** How many partitions each topic has. */
async function partitionCounts({ kafka, config }: ReturnType<typeof clientFor>): Promise<Record<string, number>> {
  const topics = Object.values(topicNames(config));
  const metadata = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics }));
  return Object.fromEntries(metadata.topics.map(({ name, partitions }) => [name.split('.').at(-1), partitions.length]));
}

test('missing topics are created, and their records get the time of the brokers; existing topics stay as they are', async () => {
  const client = clientFor('created', 3);
  const { kafka, config } = client;
  await ensureTopics(kafka, config);
  expect(await partitionCounts(client)).toEqual({ events: 3, entities: 3 });
  const topics = [...Object.values(topicNames(config)), clockTopicName(config)];
  const described = await withAdmin(kafka, (admin) =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: topics.map((name) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name })),
    }),
  );
  for (const { configEntries } of described.resources) {
    const found = configEntries.find(({ configName }) => configName === 'message.timestamp.type');
    expect(found?.configValue).toBe('LogAppendTime');
  }
  const other = clientFor('created', 5);
  await ensureTopics(other.kafka, other.config);
  expect(await partitionCounts(other)).toEqual({ events: 3, entities: 3 });
});

test('services that start at the same time create the topics together', async () => {
  const clients = Array.from({ length: 5 }, () => clientFor('together', 2));
  await Promise.all(clients.map(({ kafka, config }) => ensureTopics(kafka, config)));
  for (const client of clients) expect(await partitionCounts(client)).toEqual({ events: 2, entities: 2 });
});

test('topics that exist need no right to create: ingest-api and the writer work without it', async () => {
  const { kafka, config } = clientFor('rights', 2);
  await ensureTopics(kafka, config);
  await forbidCreating(kafka, 'rights.', 'forbidden.');
  const forbidden = clientFor('forbidden', 2);
  await expect(ensureTopics(forbidden.kafka, forbidden.config)).rejects.toThrow();
  const before = createRequests;
  await using running = await startPipeline({
    kafkaBrokers: [`127.0.0.1:${proxy.port}`],
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'rights',
    env: { KAFKA_PARTITIONS: '2' },
  });
  expect((await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] })).status).toBe(202);
  await running.settled(1);
  expect(createRequests).toBe(before);
});

test('a writer with another KAFKA_PARTITIONS than the stored rows were spread over, or of another group, ends and says so', async () => {
  await using running = await startPipeline({
    kafkaBrokers: [`127.0.0.1:${proxy.port}`],
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'counted',
    env: { KAFKA_PARTITIONS: '2' },
  });
  const [port = 0] = await findFreePorts(1);
  const other = startService('writer', port, { ...running.environment, KAFKA_PARTITIONS: '1' });
  expect(await other.endsItself()).toBe(1);
  expect(other.log()).toMatch(/counted\.\w+ were spread over 2 partitions, and KAFKA_PARTITIONS is 1: set it to 2/);
  const stranger = startService('writer', port, { ...running.environment, KAFKA_GROUP_ID: 'another' });
  expect(await stranger.endsItself()).toBe(1);
  expect(stranger.log()).toMatch(/belongs to the consumer group counted-writer, and KAFKA_GROUP_ID is another/);
});

test('a writer reports an ingest-api with another KAFKA_PARTITIONS, and stores its rows', async () => {
  const kafkaBrokers = [`127.0.0.1:${proxy.port}`];
  const name = 'misplaced';
  const env = { KAFKA_PARTITIONS: '2' };
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: inject('clickhouseUrl'), name, env });
  const { writer } = running.services;
  const misplaced = () => readMetric(writer, 'sluice_writer_misplaced_messages_total');
  expect((await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] })).status).toBe(202);
  await running.settled(1);
  expect(await misplaced()).toBe(0);
  const [port = 0] = await findFreePorts(1);
  const other = startService('ingest-api', port, { ...running.environment, KAFKA_PARTITIONS: '1' });
  await using _ = { [Symbol.asyncDispose]: () => other.kill9() };
  await other.ready();
  await submitUntilAccepted(
    { foreignUserGroupId: 'g', events: [{ event: 'e' }] },
    { url: other.url, key: running.key },
  );
  await running.settled(2);
  expect(await misplaced()).toBeGreaterThan(0);
  expect(writer.log()).toContain('set the same KAFKA_PARTITIONS for all services');
});

test('a topic with fewer partitions than KAFKA_PARTITIONS keeps ingest-api from being ready, and says so', async () => {
  const few = clientFor('few', 2);
  await ensureTopics(few.kafka, few.config);
  const kafkaBrokers = [`127.0.0.1:${proxy.port}`];
  const env = { KAFKA_PARTITIONS: '3' };
  await using ingest = await startIngestAlone({ kafkaBrokers, name: 'few', env, ready: false });
  const missing = async () => {
    const response = await fetch(`${ingest.service.url}/readyz`).catch(() => undefined);
    return response && [response.status, await response.text()];
  };
  await eventually(missing).toEqual([
    503,
    expect.stringContaining('topic few.events has 2 partitions, and KAFKA_PARTITIONS is 3'),
  ]);
});

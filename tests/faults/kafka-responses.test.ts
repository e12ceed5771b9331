import { randomUUID } from 'node:crypto';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { findFreePorts } from '@sluice/local-stack/ports';
import { eventHash } from '@sluice/shared/rows/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { KAFKA_API, type KafkaFate, type KafkaProxy, startKafkaProxy } from '../kit/kafka-proxy.ts';
import { readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';

const clickhouseUrl = inject('clickhouseUrl');
const deliver = (): KafkaFate => 'deliver';

/** Error codes of Kafka's protocol. */
const COORDINATOR_LOADS = 14;
const COORDINATOR_NOT_AVAILABLE = 15;
const TOPIC_AUTHORIZATION_FAILED = 29;
const GROUP_AUTHORIZATION_FAILED = 30;
const KAFKA_STORAGE_ERROR = 56;

let decide: (api: number) => KafkaFate = deliver;
let proxy: KafkaProxy;
let kafka: LocalKafka & AsyncDisposable;

beforeAll(async () => {
  const [port = 0] = await findFreePorts(1);
  proxy = await startKafkaProxy(port, (api) => decide(api));
  kafka = await ownKafka({ ports: [port], advertisedPorts: [proxy.port] });
});
afterAll(async () => {
  await kafka?.[Symbol.asyncDispose]();
  await proxy?.[Symbol.asyncDispose]();
});

const brokers = () => [`127.0.0.1:${proxy.port}`];

test.each([
  ['has damaged records', KAFKA_STORAGE_ERROR],
  ['may not be read', TOPIC_AUTHORIZATION_FAILED],
])(
  'a partition that %s delays only its own events, for a writer that runs and one that starts',
  async (_, errorCode) => {
    const partitions = 4;
    const name = `sick${errorCode}`;
    const env = { KAFKA_PARTITIONS: String(partitions) };
    await using running = await startPipeline({ kafkaBrokers: brokers(), clickhouseUrl, name, env });
    const failed = { topic: `${name}.events`, partition: 1, errorCode };
    let sent = 0;
    let expected = 0;
    async function submit(): Promise<void> {
      const events = Array.from({ length: 40 }, () => ({ event: 'e', uuid: randomUUID() }));
      expect((await running.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
      sent += events.length;
      expected += events.filter(({ uuid }) => eventHash(uuid) % partitions !== failed.partition).length;
    }
    const total = async () => (await running.get<{ total: number }>('/events?limit=0')).body.total;
    const storedOthers = () => until('the others to be stored', async () => (await total()) === expected);
    await submit();
    await running.settled(sent);
    await running.drained();
    expected = sent;
    try {
      decide = (api) => (api === KAFKA_API.fetch ? { failed } : 'deliver');
      await submit();
      await storedOthers();
      const { writer } = running.services;
      await eventually(() => readMetric(writer, 'sluice_writer_lag_messages')).toBeGreaterThan(0);
      expect(writer.log(), 'a restart delays all partitions').not.toContain('the Kafka consumer failed');
      await writer.kill9();
      await submit();
      await running.restart('writer');
      await storedOthers();
      decide = (api) => (api === KAFKA_API.fetch || api === KAFKA_API.listOffsets ? { failed } : 'deliver');
      await running.services.writer.kill9();
      await submit();
      await running.restart('writer');
      await storedOthers();
    } finally {
      decide = deliver;
    }
    await running.settled(sent);
  },
);

test('a coordinator that the brokers create slowly at a first start: the writer waits for it, and does not start again', async () => {
  const { findCoordinator, joinGroup } = KAFKA_API;
  let looked = 0;
  let joined = 0;
  // kafkajs looks for about ten seconds until it has looked so often. A connection is cut now and then.
  decide = (api) => {
    if (api === findCoordinator && ++looked <= 18) {
      return looked % 8 === 0 ? 'cut' : { errorCode: COORDINATOR_NOT_AVAILABLE };
    }
    return api === joinGroup && ++joined === 1 ? { errorCode: COORDINATOR_LOADS } : 'deliver';
  };
  try {
    await using running = await startPipeline({ kafkaBrokers: brokers(), clickhouseUrl, name: 'slowcoordinator' });
    await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
    await running.settled(1);
    expect(looked).toBeGreaterThan(18);
    expect(running.services.writer.log()).not.toMatch(/"level":[456]0/);
  } finally {
    decide = deliver;
  }
});

test('a group that the writer may not use: it ends, and says why', async () => {
  decide = (api) => (api === KAFKA_API.findCoordinator ? { errorCode: GROUP_AUTHORIZATION_FAILED } : 'deliver');
  try {
    const start = startPipeline({ kafkaBrokers: brokers(), clickhouseUrl, name: 'forbidden' });
    await expect(start).rejects.toThrow(/"level":60.*Not authorized to access group.*cannot go on/);
  } finally {
    decide = deliver;
  }
});

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { findFreePorts } from '@sluice/local-stack/ports';
import { eventHash } from '@sluice/shared/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { KAFKA_API, type KafkaFate, type KafkaProxy, startKafkaProxy } from '../support/kafka-proxy.ts';
import { startLoad } from '../support/load.ts';
import { countResponses, readMetric } from '../support/metrics.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import { seededRandom } from '../support/random.ts';
import { expectExactlyOnce } from '../support/verify-delivery.ts';

const clickhouseUrl = inject('clickhouseUrl');
const deliver = (): KafkaFate => 'deliver';
const reachAll = (): boolean => true;

/** Fewer than the response to a commit of all partitions has, more than one to a commit of a few. */
const ALL_PARTITIONS_BYTES = 150;

/** Error codes of Kafka's protocol. */
const COORDINATOR_LOADS = 14;
const COORDINATOR_NOT_AVAILABLE = 15;
const TOPIC_AUTHORIZATION_FAILED = 29;
const GROUP_AUTHORIZATION_FAILED = 30;
const KAFKA_STORAGE_ERROR = 56;

let decide: (api: number, bytes: number) => KafkaFate = deliver;
/** Whether a request gets to the broker. */
let reaches: (api: number) => boolean = reachAll;
let proxy: KafkaProxy;
let kafka: LocalKafka & AsyncDisposable;

beforeAll(async () => {
  const [port = 0] = await findFreePorts(1);
  proxy = await startKafkaProxy(
    port,
    (api, bytes) => decide(api, bytes),
    (api) => reaches(api),
  );
  kafka = await ownKafka({ ports: [port], advertisedPorts: [proxy.port] });
});
afterAll(async () => {
  await kafka?.[Symbol.asyncDispose]();
  await proxy?.[Symbol.asyncDispose]();
});

const brokers = () => [`127.0.0.1:${proxy.port}`];

/** Cuts every `every`th response to requests of one kind. */
function cutEvery(every: number, wanted: number): (api: number) => KafkaFate {
  let responses = 0;
  return (api) => (api === wanted && ++responses % every === 0 ? 'cut' : 'deliver');
}

/** Runs a pipeline under load until `enough` resolves, while responses get lost. Then everything is stored once. */
async function underFate(
  name: string,
  fate: (api: number) => KafkaFate,
  concurrency: number,
  enough: (running: Pipeline) => Promise<void>,
): Promise<void> {
  const env = { PRODUCE_TIMEOUT_MS: '3000' };
  await using running = await startPipeline({ kafkaBrokers: brokers(), clickhouseUrl, name, env });
  decide = fate;
  try {
    await using load = startLoad({ pipeline: running, urls: () => [running.services['ingest-api'].url], concurrency });
    await enough(running).finally(() => {
      decide = deliver;
    });
    const tally = await load.stop();
    expect(tally.accepted.size).toBeGreaterThan(0);
    await expectExactlyOnce(running, clickhouseUrl, tally);
  } finally {
    decide = deliver;
  }
}

/** Waits until `count` more responses to requests of these kinds are lost. */
async function lose(count: number, ...apis: readonly number[]): Promise<void> {
  const lost = () => apis.reduce((sum, api) => sum + proxy.lost(api), 0);
  const before = lost();
  await until(`${count} lost responses`, async () => lost() >= before + count);
}

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

test('a commit whose response is lost: nothing is lost or doubled', async () => {
  await underFate('lostcommits', cutEvery(5, KAFKA_API.offsetCommit), 8, () => lose(5, KAFKA_API.offsetCommit));
});

test('a writer that ends between storing and committing: the next one commits what is stored', async () => {
  await using running = await startPipeline({ kafkaBrokers: brokers(), clickhouseUrl, name: 'uncommitted' });
  await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
  await running.settled(1);
  reaches = (api) => api !== KAFKA_API.offsetCommit;
  try {
    await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
    await running.settled(2);
    await running.services.writer.kill9();
  } finally {
    reaches = reachAll;
  }
  await running.restart('writer');
  // Otherwise the lag, and an alert on it, would last until these partitions get another message.
  await running.drained();
  const { writer } = running.services;
  await eventually(() => readMetric(writer, 'sluice_writer_lag_messages')).toBe(0);
});

test('a commit of where partitions begin, whose response is lost, does not come again after the commits of batches', async () => {
  // Only the first commit of a new group names so many partitions.
  let cut = 0;
  decide = (api, bytes) =>
    api === KAFKA_API.offsetCommit && bytes > ALL_PARTITIONS_BYTES && cut++ < 4 ? 'cut' : 'deliver';
  try {
    await using running = await startPipeline({
      kafkaBrokers: brokers(),
      clickhouseUrl,
      name: 'begin',
      env: { KAFKA_PARTITIONS: '48' },
    });
    await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
    await running.settled(1);
    await running.drained();
    // kafkajs would have repeated it by now.
    await delay(4_000);
    await running.drained();
    expect(cut).toBeGreaterThan(0);
  } finally {
    decide = deliver;
  }
});

test('acknowledgements that are lost while many submissions are under way: each is stored once', async () => {
  await underFate('acknowledgements', cutEvery(7, KAFKA_API.produce), 32, async (running) => {
    const ingest = running.services['ingest-api'];
    await lose(10, KAFKA_API.produce);
    expect(await countResponses(ingest, 503), 'requests wait when a response is lost now and then').toBe(0);
    // Now all are lost, for longer than a request waits: the rows are in Kafka, and ingest-api does not know.
    decide = cutEvery(1, KAFKA_API.produce);
    const response = await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'unacknowledged' }] });
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    await until('503 for the load', async () => (await countResponses(ingest, 503)) > 10);
  });
});

test('an assignment whose response is lost when another writer leaves: nothing is lost or doubled', async () => {
  const { syncGroup } = KAFKA_API;
  await underFate('assignments', deliver, 8, async (running) => {
    const leaving = await running.startAnother('writer');
    let responses = 0;
    decide = (api) => (api === syncGroup && ++responses === 1 ? 'cut' : 'deliver');
    await Promise.all([lose(1, syncGroup), leaving.stop()]);
  });
});

test('responses to fetches, heartbeats and joins that are lost or late, at random: nothing is lost or doubled', async () => {
  const { fetch, heartbeat, joinGroup } = KAFKA_API;
  const random = seededRandom(20_260);
  const chances = new Map<number, number>([
    [fetch, 0.1],
    [heartbeat, 0.3],
    [joinGroup, 0.3],
  ]);
  const fate = (api: number): KafkaFate => {
    const chance = chances.get(api) ?? 0;
    const drawn = random();
    if (drawn < chance) return 'cut';
    return drawn < 2 * chance ? { delayMs: 1_000 * random() } : 'deliver';
  };
  await underFate('members', fate, 8, async (running) => {
    await running.startAnother('writer');
    await Promise.all([lose(1, fetch), lose(1, heartbeat, joinGroup), lose(6, fetch, heartbeat, joinGroup)]);
  });
});

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

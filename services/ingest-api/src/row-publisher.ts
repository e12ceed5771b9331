import { ensureTopics, topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import type { Component } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { backoff, retry, sleep } from '@sluice/shared/retry';
import kafkajs, { type Kafka, type Producer, type RecordMetadata } from 'kafkajs';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { IngestConfig } from './config.ts';
import { createPartitionQueue, type PartitionQueue, type QueuedRows } from './partition-queue.ts';
import { type PartitionCounts, type PartitionRows, packMessages } from './row-packing.ts';

/** kafkajs waits this long for the brokers' acknowledgement of one request, in milliseconds. */
const ACK_TIMEOUT_MS = 5_000;

/** What one send may hold: little, so that a workspace never waits long behind the rows of another. */
const SEND_BYTES_MAX = 2 * 1_024 * 1_024;

/** What one send may hold for one partition; see `ROW_BYTES_MAX`. */
const PARTITION_BYTES_MAX = 900 * 1_024;

/** How often the topics are looked at while all is well, in milliseconds. */
const TOPICS_CHECK_MS = 30_000;

/** Rows were not acknowledged in time: they may be stored or not, and sending them again is right. */
export class PublishTimeout extends Error {
  override readonly name = 'PublishTimeout';
}

export interface RowPublisher extends Component {
  /**
   * Resolves once Kafka has acknowledged every row on all in-sync replicas.
   *
   * @throws {PublishTimeout} after `PRODUCE_TIMEOUT_MS`
   */
  publish(workspace: string, rows: readonly PartitionRows[]): Promise<void>;
  /** What keeps rows from being sent, each as a short phrase. */
  missing(): string[];
}

/** A partition of one of the topics, with what waits for it. */
interface Partition {
  readonly topic: keyof PartitionCounts;
  readonly partition: number;
  readonly queue: PartitionQueue;
  /** The broker that leads it; -1 while it has no leader. */
  leader: number;
  /** A send to it is under way; there is never more than one, so acknowledged offsets grow. */
  sending: boolean;
  /** The offset of the last record batch that Kafka acknowledged. */
  acknowledgedOffset: bigint;
}

/** What one send holds for one partition. */
interface Bundle {
  readonly target: Partition;
  readonly items: readonly QueuedRows[];
}

export interface RowPublisherOptions {
  readonly kafka: Kafka;
  readonly config: IngestConfig;
  readonly logger: Logger;
  readonly registry: Registry;
}

/**
 * Gathers the rows of many requests for `PRODUCE_LINGER_MS` and sends them as few messages. There is one send at a time
 * to each broker that leads partitions: while it is under way the next is gathered, and a broker that does not answer
 * holds up its own partitions only. What is not acknowledged is sent again until its request has given up.
 */
export function createRowPublisher({ kafka, config, logger, registry }: RowPublisherOptions): RowPublisher {
  const names = topicNames(config);
  const partitions = Object.keys(names).flatMap((topic) =>
    Array.from({ length: config.KAFKA_PARTITIONS }, (_, partition) =>
      newPartition(topic as Partition['topic'], partition),
    ),
  );
  // Not idempotent: that producer of kafkajs can reuse a sequence number after a failed send, and the broker then drops
  // an acknowledged message. A repeated row costs nothing, since the writer stores each once.
  const producer: Producer = kafka.producer({
    allowAutoTopicCreation: false,
    idempotent: false,
    retry: { initialRetryTime: 100, retries: 1 },
    // Every message names its partition: a partitioner that chose would choose again when kafkajs retries.
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  const stopping = new AbortController();
  /** The brokers to which a send is under way or prepared. */
  const lanes = new Map<number, Promise<void>>();
  let faults = ['Kafka cannot be reached'];
  let starting: Promise<void> | undefined;
  let checking: Promise<void> | undefined;
  const lost = new Counter({
    name: 'sluice_ingest_acknowledged_messages_lost_total',
    help: 'Messages that Kafka had acknowledged and that its log no longer holds, as far as this process has noticed.',
    registers: [registry],
  });
  new Gauge({
    name: 'sluice_ingest_partitions_without_leader',
    help: 'Partitions to which nothing can be sent now.',
    registers: [registry],
    collect() {
      this.set(partitions.filter(({ leader }) => leader < 0).length);
    },
  });

  async function connect(): Promise<void> {
    await ensureTopics(kafka, config);
    await producer.connect();
    await lookAtTopics();
    logger.info({ partitions: config.KAFKA_PARTITIONS }, 'connected to Kafka');
  }

  async function run(): Promise<void> {
    await retry(connect, {
      firstMs: 200,
      maxMs: 5_000,
      signal: stopping.signal,
      onFailure: (error) => logger.warn({ reason: (error as Error).message }, 'Kafka cannot be reached yet'),
    });
    while (!stopping.signal.aborted) {
      await sleep(TOPICS_CHECK_MS, stopping.signal);
      await checkTopics();
    }
  }

  /** Looks at the topics, once for all who ask at the same time. */
  async function checkTopics(): Promise<void> {
    checking ??= lookAtTopics()
      .catch((error) => logger.warn({ reason: (error as Error).message }, 'the topics cannot be looked at'))
      .finally(() => {
        checking = undefined;
      });
    await checking;
  }

  async function lookAtTopics(): Promise<void> {
    const topics = Object.values(names);
    const metadata = await withAdmin(kafka, (admin) => admin.fetchTopicMetadata({ topics }));
    const leaders = new Map(
      metadata.topics.flatMap(({ name, partitions: found }) =>
        found.map(({ partitionId, leader }) => [`${name}/${partitionId}`, leader]),
      ),
    );
    faults = metadata.topics
      .filter(({ partitions: found }) => found.length < config.KAFKA_PARTITIONS)
      .map(
        ({ name, partitions: found }) =>
          `topic ${name} has ${found.length} partitions, and KAFKA_PARTITIONS is ${config.KAFKA_PARTITIONS}`,
      );
    for (const { name, partitions: found } of metadata.topics) {
      if (found.length <= config.KAFKA_PARTITIONS) continue;
      const counts = { topic: name, partitions: found.length, used: config.KAFKA_PARTITIONS };
      logger.warn(counts, 'a topic has more partitions than KAFKA_PARTITIONS: the others are not used');
    }
    for (const target of partitions) target.leader = leaders.get(`${names[target.topic]}/${target.partition}`) ?? -1;
    schedule();
  }

  function schedule(): void {
    if (faults.length > 0) return;
    for (const target of partitions) {
      // Its leader may be another one by the time that the lane is done.
      const { leader } = target;
      if (!isWaiting(target) || lanes.has(leader)) continue;
      const lane = sendAll(leader).finally(() => {
        lanes.delete(leader);
        schedule();
      });
      lanes.set(leader, lane);
    }
  }

  /** Sends what waits for the partitions of one broker until nothing is left. */
  async function sendAll(leader: number): Promise<void> {
    const delays = backoff(50, 1_000);
    let isBehind = false;
    for (let targets = waitingFor(leader); targets.length > 0; targets = waitingFor(leader)) {
      if (!isBehind) await sleep(config.PRODUCE_LINGER_MS);
      const bundles = takeBundles(waitingFor(leader));
      isBehind = waitingFor(leader).length > 0;
      if (await sendBundles(bundles, leader)) continue;
      // Perhaps another broker leads them by now.
      void checkTopics();
      await sleep(delays.next().value);
    }
  }

  function isWaiting({ queue, sending }: Partition): boolean {
    return !queue.isEmpty && !sending;
  }

  function waitingFor(leader: number): Partition[] {
    return partitions.filter((target) => target.leader === leader && isWaiting(target));
  }

  function takeBundles(targets: readonly Partition[]): Bundle[] {
    const bytesMax = Math.min(PARTITION_BYTES_MAX, SEND_BYTES_MAX / targets.length);
    return targets.map((target) => ({ target, items: target.queue.take(bytesMax) }));
  }

  /** Whether everything was acknowledged; what was not waits again. */
  async function sendBundles(bundles: readonly Bundle[], leader: number): Promise<boolean> {
    for (const { target } of bundles) target.sending = true;
    const rest = leader < 0 ? bundles : await send(bundles);
    for (const { target } of bundles) target.sending = false;
    for (const { target, items } of rest) {
      for (const item of items) if (!item.expired) target.queue.add(item);
    }
    // Some of them may have moved to a broker that was idle meanwhile.
    schedule();
    return rest.length === 0;
  }

  /** Gives what was not acknowledged: after a leader moves, kafkajs resolves without having sent to all. */
  async function send(bundles: readonly Bundle[]): Promise<readonly Bundle[]> {
    try {
      const acknowledged = await sendBatch(bundles);
      const rest = bundles.filter(({ target }) => {
        const metadata = acknowledged.get(target);
        if (metadata) followOffsets(target, metadata);
        return !metadata;
      });
      for (const bundle of bundles) {
        if (!rest.includes(bundle)) for (const item of bundle.items) item.acknowledged();
      }
      if (rest.length > 0) logger.warn({ partitions: rest.length }, 'a send left partitions out; sending them again');
      return rest;
    } catch (error) {
      logger.warn({ reason: (error as Error).message }, 'sending to Kafka failed; sending again');
      return bundles;
    }
  }

  async function sendBatch(bundles: readonly Bundle[]): Promise<ReadonlyMap<Partition, RecordMetadata>> {
    const byTopic = Map.groupBy(bundles, ({ target }) => names[target.topic]);
    const metadata = await producer.sendBatch({
      acks: -1,
      timeout: ACK_TIMEOUT_MS,
      compression: COMPRESSION[config.KAFKA_COMPRESSION],
      topicMessages: [...byTopic].map(([topic, ofTopic]) => ({
        topic,
        messages: ofTopic.flatMap(({ target, items }) => packMessages(target.partition, items)),
      })),
    });
    const acknowledged = new Map<Partition, RecordMetadata>();
    for (const { target } of bundles) {
      const found = metadata.find(
        ({ topicName, partition }) => topicName === names[target.topic] && partition === target.partition,
      );
      if (found?.errorCode === 0) acknowledged.set(target, found);
    }
    return acknowledged;
  }

  /** Offsets only grow, unless the log's end was cut off: then messages that were acknowledged are gone. */
  function followOffsets(target: Partition, { baseOffset }: RecordMetadata): void {
    const offset = BigInt(baseOffset ?? -1);
    if (offset <= target.acknowledgedOffset) {
      const messages = Number(target.acknowledgedOffset - offset + 1n);
      lost.inc(messages);
      logger.error(
        { topic: names[target.topic], partition: target.partition, messages, offset: String(offset) },
        'Kafka has lost messages that it had acknowledged: the end of the log was cut off',
      );
    }
    target.acknowledgedOffset = offset;
  }

  return {
    name: 'Kafka producer',
    missing: () => [...faults],
    async start() {
      // In the background: the service is alive, though not ready, while Kafka is away.
      starting ??= run().catch((error) => {
        if (!stopping.signal.aborted) throw error;
      });
    },
    publish(workspace, rows) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      let remaining = rows.length;
      const queued = rows.map((item): QueuedRows => ({ ...item, workspace, expired: false, acknowledged }));
      const timer = setTimeout(() => {
        for (const item of queued) {
          item.expired = true;
          queueOf(item).remove(item);
        }
        reject(new PublishTimeout('Kafka has not acknowledged the rows in time'));
      }, config.PRODUCE_TIMEOUT_MS);

      function acknowledged(): void {
        remaining -= 1;
        if (remaining > 0) return;
        clearTimeout(timer);
        resolve();
      }

      for (const item of queued) queueOf(item).add(item);
      schedule();
      return promise;
    },
    async stop() {
      stopping.abort();
      await starting;
      await checking;
      while (lanes.size > 0) await Promise.all(lanes.values());
      await producer.disconnect();
    },
  };

  function queueOf({ topic, partition }: PartitionRows): PartitionQueue {
    const index = partition + (topic === 'events' ? 0 : config.KAFKA_PARTITIONS);
    return (partitions[index] as Partition).queue;
  }
}

const COMPRESSION = {
  none: kafkajs.CompressionTypes.None,
  gzip: kafkajs.CompressionTypes.GZIP,
  zstd: kafkajs.CompressionTypes.ZSTD,
} as const;

function newPartition(topic: Partition['topic'], partition: number): Partition {
  return { topic, partition, queue: createPartitionQueue(), leader: -1, sending: false, acknowledgedOffset: -1n };
}

import type { LocalKafka } from '@sluice/local-stack/kafka';
import { findFreePorts } from '@sluice/local-stack/ports';
import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Admin, PartitionMetadata } from 'kafkajs';
import { inject } from 'vitest';
import { ownKafka } from './engines.ts';
import { type KafkaFate, startKafkaProxy } from './kafka-proxy.ts';
import { type Pipeline, startPipeline } from './pipeline.ts';

export const BROKERS = [0, 1, 2] as const;

/** What the proxies do with a response of a broker. Brokers count from 0. */
type Decide = (broker: number, api: number, bytes: number, clientId: string) => KafkaFate;
/** Whether a request gets to a broker. */
type Reaches = (broker: number, api: number, clientId: string) => boolean;

const deliverAll: Decide = () => 'deliver';
const reachAll: Reaches = () => true;

/** Three brokers of one cluster, with a proxy in front of each. */
export class ThreeBrokers implements AsyncDisposable {
  decide = deliverAll;
  reaches = reachAll;
  readonly kafka: LocalKafka;
  readonly #owned: AsyncDisposableStack;

  private constructor(kafka: LocalKafka, owned: AsyncDisposableStack) {
    this.kafka = kafka;
    this.#owned = owned;
  }

  static async start(): Promise<ThreeBrokers> {
    await using started = new AsyncDisposableStack();
    const ports = await findFreePorts(BROKERS.length);
    let running: ThreeBrokers | undefined;
    const advertisedPorts: number[] = [];
    for (const [broker, port] of ports.entries()) {
      const proxy = await startKafkaProxy(
        port,
        (...response) => (running?.decide ?? deliverAll)(broker, ...response),
        (...request) => (running?.reaches ?? reachAll)(broker, ...request),
      );
      started.use(proxy);
      advertisedPorts.push(proxy.port);
    }
    // Kafka's default: what two brokers have to have, topics say themselves.
    const settings = {
      ...{ 'min.insync.replicas': 1, 'replica.lag.time.max.ms': 5_000 },
      // A replica whose request was dropped asks again after this time.
      'replica.socket.timeout.ms': 5_000,
    };
    const kafka = started.use(await ownKafka({ brokers: 3, ports, advertisedPorts, settings }));
    running = new ThreeBrokers(kafka, started.move());
    return running;
  }

  /** The proxies deliver everything again, and all brokers run: a test that fails may leave some down. */
  async repair(): Promise<void> {
    this.deliverAll();
    this.reachAll();
    const { kafka } = this;
    await Promise.all(
      BROKERS.filter((broker) => kafka.pids[broker] === undefined).map((broker) => kafka.restart(broker)),
    );
  }

  deliverAll(): void {
    this.decide = deliverAll;
  }

  reachAll(): void {
    this.reaches = reachAll;
  }

  /** A pipeline whose topics have as many replicas. */
  async startPipeline(name: string, replicas: number, env: Readonly<Record<string, string>> = {}): Promise<Pipeline> {
    return await startPipeline({
      kafkaBrokers: this.kafka.brokers,
      clickhouseUrl: inject('clickhouseUrl'),
      name,
      env: { KAFKA_REPLICATION_FACTOR: String(replicas), ...env },
    });
  }

  /** Runs `use` with an admin client that starts from one broker. */
  async withAdminOf<Result>(broker: number, use: (admin: Admin) => Promise<Result>): Promise<Result> {
    const config = {
      KAFKA_BROKERS: [this.kafka.brokers[broker] ?? ''],
      KAFKA_TOPIC_PREFIX: '',
      KAFKA_PARTITIONS: 1,
      KAFKA_SSL: false,
    };
    return await withAdmin(createKafka(config, 'test', createLogger('test', 'silent')), use);
  }

  async partitionsOf(topic: string, broker = 0): Promise<readonly PartitionMetadata[]> {
    // kafkajs may return nothing for a topic while one of its partitions has no leader.
    const found = await this.withAdminOf(broker, (admin) => admin.fetchTopicMetadata({ topics: [topic] })).catch(
      () => undefined,
    );
    return found?.topics[0]?.partitions ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}

import { type Span, SpanKind } from '@opentelemetry/api';
import type { Logger } from '@sluice/shared/base/log';
import { markFailed } from '@sluice/shared/tracing/failed-span';
import { sharedWork, traceHeader } from '@sluice/shared/tracing/message-spans';
import { ATTRIBUTE, tracer } from '@sluice/shared/tracing/tracer';
import { packMessages } from '@sluice/submissions/rows/message-packing';
import kafkajs, { type Kafka, type Producer } from 'kafkajs';
import type { IngestConfig } from '../config.ts';
import type { IngestMetrics } from '../metrics.ts';
import type { QueuedRows } from './partition-queue.ts';
import { encodeProduceRequest } from './produce-request.ts';
import type { TopicPartition } from './topic-partition.ts';

/** How long a broker waits for its in-sync replicas, in milliseconds. */
const ACK_TIMEOUT_MS = 5_000;

const COMPRESSION = {
  none: kafkajs.CompressionTypes.None,
  gzip: kafkajs.CompressionTypes.GZIP,
  zstd: kafkajs.CompressionTypes.ZSTD,
} as const;

export interface BatchSenderOptions {
  readonly kafka: Kafka;
  readonly compression: IngestConfig['KAFKA_COMPRESSION'];
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
  readonly metrics: Pick<IngestMetrics, 'lostMessages'>;
  readonly logger: Logger;
}

/** Sends rows with kafkajs, and finds out for each partition whether Kafka has acknowledged them. */
export class BatchSender {
  /**
   * A broker processes the requests of one connection one after the other, and a response waits for its slowest
   * partition. So partitions that fail have connections of their own.
   */
  readonly #producers: Readonly<Record<'healthy' | 'failing', Producer>>;
  readonly #options: BatchSenderOptions;

  constructor(options: BatchSenderOptions) {
    this.#options = options;
    this.#producers = { healthy: createProducer(options.kafka), failing: createProducer(options.kafka) };
  }

  async connect(): Promise<void> {
    await this.#producers.healthy.connect();
  }

  async disconnect(): Promise<void> {
    await Promise.all(Object.values(this.#producers).map((producer) => producer.disconnect()));
  }

  /**
   * Sends the bundles to a broker as one request, once, and reports the rows that it acknowledges. It never throws.
   *
   * @param health chooses the connection
   * @returns the bundles that were not acknowledged; without a response, all
   */
  async send(leader: number, bundles: readonly Bundle[], health: 'healthy' | 'failing'): Promise<SendFailure[]> {
    const spans = new SendSpans(bundles);
    const failures = await this.#sendOnce(leader, bundles, health, spans);
    spans.end(failures);
    return failures;
  }

  async #sendOnce(
    leader: number,
    bundles: readonly Bundle[],
    health: 'healthy' | 'failing',
    spans: SendSpans,
  ): Promise<SendFailure[]> {
    const { compression } = this.#options;
    try {
      const request = {
        acks: -1,
        timeout: ACK_TIMEOUT_MS,
        compression: COMPRESSION[compression],
        topicData: this.#topicsOf(bundles, spans),
      };
      const encode = () => encodeProduceRequest(request);
      const results = await this.#producers[health].sendToBroker({ nodeId: leader, ...request, encode });
      const failures: SendFailure[] = [];
      for (const bundle of bundles) {
        const { topic, partition } = bundle.target;
        const result = results.find((found) => found.topicName === topic && found.partition === partition);
        if (result?.errorCode === 0) this.#acknowledge(bundle, result.baseOffset);
        else failures.push({ bundle, type: result?.error?.type, reason: result?.error?.message ?? 'no result' });
      }
      return failures;
    } catch (error) {
      const reason = (error as Error).message;
      return bundles.map((bundle) => ({ bundle, type: undefined, reason }));
    }
  }

  #topicsOf(bundles: readonly Bundle[], spans: SendSpans) {
    const byTopic = Map.groupBy(bundles, ({ target }) => target.topic);
    return [...byTopic].map(([topic, ofTopic]) => {
      const header = spans.header(topic);
      const partitions = ofTopic.map(({ target: { partition }, items }) => ({
        partition,
        messages: packMessages(partition, items, this.#options.partitionCount, header),
      }));
      spans.countMessages(
        topic,
        partitions.reduce((sum, { messages }) => sum + messages.length, 0),
      );
      return { topic, partitions };
    });
  }

  #acknowledge({ target, items }: Bundle, baseOffset = '-1'): void {
    const messages = target.acknowledge(BigInt(baseOffset));
    for (const item of items) item.acknowledged();
    if (messages === 0) return;
    this.#options.metrics.lostMessages.inc(messages);
    this.#options.logger.error(
      { topic: target.topic, partition: target.partition, messages, offset: baseOffset },
      'Kafka has lost messages that it had acknowledged: the end of the log was cut off',
    );
  }
}

function createProducer(kafka: Kafka): Producer {
  return kafka.producer({
    allowAutoTopicCreation: false,
    // kafkajs's idempotent producer can reuse a sequence number after a failed send, and the broker then drops a message
    // that it acknowledges. A repeated row costs nothing, since the writer stores each once.
    idempotent: false,
    retry: { initialRetryTime: 100, retries: 1 },
  });
}

/**
 * The spans of one send, one for each topic. Each has links to the requests whose rows it holds, and its name travels in
 * a header of its messages, to the writer.
 */
class SendSpans {
  readonly #spans: ReadonlyMap<string, Span>;

  constructor(bundles: readonly Bundle[]) {
    const byTopic = Map.groupBy(bundles, ({ target }) => target.topic);
    this.#spans = new Map([...byTopic].map(([topic, ofTopic]) => [topic, startSpan(topic, ofTopic)]));
  }

  /** Returns the header of the messages for a topic; none while nothing is traced. */
  header(topic: string): Readonly<Record<string, string>> {
    const span = this.#spans.get(topic);
    return span ? traceHeader(span) : {};
  }

  countMessages(topic: string, count: number): void {
    this.#spans.get(topic)?.setAttribute(ATTRIBUTE.messageCount, count);
  }

  /** Ends the spans. One of a topic with rows that Kafka has not acknowledged has failed. */
  end(failures: readonly SendFailure[]): void {
    for (const [topic, span] of this.#spans) {
      const failure = failures.find(({ bundle }) => bundle.target.topic === topic);
      if (failure) markFailed(span, failure.type ?? 'no response');
      span.end();
    }
  }
}

function startSpan(topic: string, bundles: readonly Bundle[]): Span {
  const requests = new Set<Span>();
  for (const { items } of bundles) for (const { span } of items) if (span) requests.add(span);
  const { parent, links } = sharedWork([...requests].map((span) => ({ context: span.spanContext() })));
  const attributes = {
    [ATTRIBUTE.messagingSystem]: 'kafka',
    [ATTRIBUTE.destination]: topic,
    [ATTRIBUTE.operation]: 'send',
    [ATTRIBUTE.operationType]: 'send',
  };
  return tracer.startSpan(`send ${topic}`, { kind: SpanKind.PRODUCER, links, attributes }, parent);
}

/** What one send holds for one partition. */
export interface Bundle {
  readonly target: TopicPartition;
  readonly items: readonly QueuedRows[];
}

/** Why a bundle was not acknowledged. */
export interface SendFailure {
  readonly bundle: Bundle;
  /** Kafka's name of the error, such as `NOT_ENOUGH_REPLICAS`; `undefined` when no response came. */
  readonly type: string | undefined;
  readonly reason: string;
}

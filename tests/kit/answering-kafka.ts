import { randomUUID } from 'node:crypto';
import { findFreePorts } from '@sluice/local-stack/ports';
import { eventHash } from '@sluice/shared/rows/row-hashes';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import { ownKafka } from './engines.ts';
import { KAFKA_API, type KafkaFate, startKafkaProxy } from './kafka-proxy.ts';
import { readMetric } from './metrics.ts';
import { startPipeline } from './pipeline.ts';

const deliver = (): KafkaFate => 'deliver';

/** A Kafka of one broker, behind a proxy that may respond in its place. */
export class AnsweringKafka implements AsyncDisposable {
  /** What becomes of a response. */
  decide: (api: number) => KafkaFate = deliver;
  readonly brokers: readonly string[];
  readonly #owned: AsyncDisposableStack;

  private constructor(port: number, owned: AsyncDisposableStack) {
    this.brokers = [`127.0.0.1:${port}`];
    this.#owned = owned;
  }

  static async start(): Promise<AnsweringKafka> {
    await using started = new AsyncDisposableStack();
    const [port = 0] = await findFreePorts(1);
    let running: AnsweringKafka | undefined;
    const proxy = started.use(await startKafkaProxy(port, (api) => (running?.decide ?? deliver)(api)));
    started.use(await ownKafka({ ports: [port], advertisedPorts: [proxy.port] }));
    running = new AnsweringKafka(proxy.port, started.move());
    return running;
  }

  deliverAll(): void {
    this.decide = deliver;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}

/** Expects that a partition whose fetches fail delays only its own events, for a writer that runs and one that starts. */
export async function expectOthersStored(
  kafka: AnsweringKafka,
  clickhouseUrl: string,
  errorCode: number,
): Promise<void> {
  const partitions = 4;
  const name = `sick${errorCode}`;
  const env = { KAFKA_PARTITIONS: String(partitions) };
  await using running = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name, env });
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
    kafka.decide = (api) => (api === KAFKA_API.fetch ? { failed } : 'deliver');
    await submit();
    await storedOthers();
    const { writer } = running.services;
    await eventually(() => readMetric(writer, 'sluice_writer_lag_messages')).toBeGreaterThan(0);
    expect(writer.log(), 'a restart delays all partitions').not.toContain('the Kafka consumer failed');
    await writer.kill9();
    await submit();
    await running.restart('writer');
    await storedOthers();
    kafka.decide = (api) => (api === KAFKA_API.fetch || api === KAFKA_API.listOffsets ? { failed } : 'deliver');
    await running.services.writer.kill9();
    await submit();
    await running.restart('writer');
    await storedOthers();
  } finally {
    kafka.deliverAll();
  }
  await running.settled(sent);
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { findFreePorts } from '@sluice/local-stack/ports';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { ConfigResourceTypes, type Kafka } from 'kafkajs';
import { expect } from 'vitest';
import { readClickHouse } from './clickhouse.ts';
import { kafkaClient } from './kafka-client.ts';
import { type Pipeline, type PipelineOptions, startPipeline } from './pipeline.ts';
import { type Service, type ServiceName, startService } from './service.ts';
import { startStatementProxy } from './statement-proxy.ts';

/** A pipeline of two partitions whose number an operator grows with `npm run writer -- grow-partitions N`, run as a process. */
export class GrowingPipeline implements AsyncDisposable {
  readonly running: Pipeline;
  readonly kafka: Kafka;
  readonly topics: readonly string[];
  readonly #clickhouseUrl: string;
  readonly #name: string;
  readonly #owned: AsyncDisposableStack;

  private constructor(running: Pipeline, options: GrowingOptions, owned: AsyncDisposableStack) {
    this.running = running;
    this.kafka = kafkaClient(options.kafkaBrokers);
    this.topics = [`${options.name}.events`, `${options.name}.entities`];
    this.#clickhouseUrl = options.clickhouseUrl;
    this.#name = options.name;
    this.#owned = owned;
  }

  static async start(options: GrowingOptions): Promise<GrowingPipeline> {
    await using started = new AsyncDisposableStack();
    const running = started.use(await startPipeline({ ...options, env: { ...options.env, KAFKA_PARTITIONS: '2' } }));
    return new GrowingPipeline(running, options, started.move());
  }

  /** Starts another process of a service. It ends with the pipeline. */
  async startWith(name: ServiceName, partitions: number): Promise<Service> {
    const [port = 0] = await findFreePorts(1);
    const service = startService(name, port, { ...this.running.environment, KAFKA_PARTITIONS: String(partitions) });
    this.#owned.defer(() => service.kill9());
    return service;
  }

  /** Starts the command. @param different what its environment has instead of the pipeline's */
  start(args: readonly string[], different: Readonly<Record<string, string>> = {}) {
    const env = { ...inherited(), ...this.running.environment, ...different };
    const child = spawn(process.execPath, [programFile('sluice'), 'writer', 'grow-partitions', ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    return { child, ended: once(child, 'close').then(([code]) => ({ code: code as number | null, output })) };
  }

  async run(...args: string[]) {
    return await this.start(args).ended;
  }

  /** The number of partitions of each topic, in Kafka. */
  async inKafka(): Promise<number[]> {
    const { topics } = await withAdmin(this.kafka, (admin) => admin.fetchTopicMetadata({ topics: [...this.topics] }));
    return this.topics.map((topic) => topics.find(({ name }) => name === topic)?.partitions.length ?? 0);
  }

  /** The numbers of partitions that are recorded, in ClickHouse. */
  async recorded(): Promise<string> {
    const sql = "SELECT arrayStringConcat(arraySort(groupUniqArray(partitions)), ' ') FROM topic_partitions";
    return await readClickHouse(this.#clickhouseUrl, sql, { database: this.running.database });
  }

  /** Removes what ingest-apis have sent to the topic of the clock, and leaves a record of this age, in milliseconds. */
  async lastSignOfLife(ageMs: number): Promise<void> {
    const topic = `${this.#name}.clock`;
    const stampedBy = (value: string) => ({
      validateOnly: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: topic,
          configEntries: [{ name: 'message.timestamp.type', value }],
        },
      ],
    });
    await withAdmin(this.kafka, async (admin) => {
      await admin.alterConfigs(stampedBy('CreateTime'));
      const producer = this.kafka.producer();
      await producer.connect();
      await producer.send({ topic, messages: [{ key: null, value: '', timestamp: String(Date.now() - ageMs) }] });
      await producer.disconnect();
      await admin.alterConfigs(stampedBy('LogAppendTime'));
    });
  }

  /**
   * Kills the command before a statement, when Kafka has four partitions of each topic: a writer with any of these numbers of
   * partitions ends itself. Returns what is recorded then.
   */
  async killBefore(statement: string, refused: readonly number[]): Promise<string> {
    const reached = Promise.withResolvers<void>();
    await using proxy = await startStatementProxy(this.#clickhouseUrl, async (name, moment) => {
      if (name !== statement || moment !== 'before') return;
      reached.resolve();
      await new Promise(() => undefined);
    });
    const { child, ended } = this.start(['4', '--yes'], { CLICKHOUSE_URL: proxy.url });
    await Promise.race([reached.promise, ended.then(({ output }) => Promise.reject(new Error(output)))]);
    child.kill('SIGKILL');
    expect((await ended).code).toBeNull();
    expect(await this.inKafka()).toEqual([4, 4]);
    for (const partitions of refused) {
      const writer = await this.startWith('writer', partitions);
      expect(await writer.endsItself()).toBe(1);
      expect(writer.log()).toMatch(/were spread over \d partitions, and KAFKA_PARTITIONS is \d/);
    }
    return await this.recorded();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}

export interface GrowingOptions {
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
  /** The name of the pipeline. */
  readonly name: string;
  /** As those of a pipeline. */
  readonly servers?: NonNullable<PipelineOptions['servers']>;
  readonly env?: Readonly<Record<string, string>>;
}

const timestamp = new Date().toISOString();

/** A submission of so many events, whose uuids count from `first`. */
export function numberedEvents(first: number, count: number) {
  const events = Array.from({ length: count }, (_, index) => ({
    event: 'e',
    timestamp,
    uuid: `00000000-0000-4000-8000-${String(first + index).padStart(12, '0')}`,
  }));
  return { foreignUserGroupId: 'g', events };
}

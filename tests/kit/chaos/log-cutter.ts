import type { LocalKafka } from '@sluice/local-stack/kafka';
import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { until } from '@sluice/shared/testing/until';
import type { Pipeline } from '../pipeline.ts';
import { seededRandom } from '../random.ts';
import { cutOffLog, keysSince, resumeHalted } from './cut-off-log.ts';

/** The most batches that a log loses at once. */
const BATCHES_MAX = 15;

/** Cuts off logs of a pipeline's events. */
export interface LogCutter {
  /** The keys of events that were cut off before they were stored. */
  readonly cutOff: ReadonlySet<string>;
  /** The keys of all events that were cut off. */
  readonly gone: ReadonlySet<string>;
  /** Kills all brokers, cuts off the log of one partition, and starts them again. */
  cut(): Promise<void>;
  /** Has the writers go on where they have halted since a log was cut off; nothing before. */
  resume(): Promise<void>;
}

export function createLogCutter(kafka: LocalKafka, kafkaDir: string, pipeline: Pipeline, seed: number): LogCutter {
  const random = seededRandom(seed + 2);
  const { KAFKA_GROUP_ID: groupId = '', KAFKA_TOPIC_PREFIX: prefix = '' } = pipeline.environment;
  const topic = `${prefix}events`;
  const config = {
    KAFKA_BROKERS: [...kafka.brokers],
    KAFKA_TOPIC_PREFIX: prefix,
    KAFKA_PARTITIONS: 1,
    KAFKA_SSL: false,
  };
  const client = createKafka(config, 'test', createLogger('test', 'silent'));
  const cutOff = new Set<string>();
  const gone = new Set<string>();
  let isCut = false;

  /** The offset that the writers have committed; `undefined` while Kafka cannot say. */
  async function storedUpTo(partition: number): Promise<{ readonly offset: bigint } | undefined> {
    const groups = await withAdmin(client, (admin) => admin.fetchOffsets({ groupId, topics: [topic] })).catch(
      () => undefined,
    );
    const offset = groups?.[0]?.partitions.find((found) => found.partition === partition)?.offset;
    return offset === undefined ? undefined : { offset: BigInt(offset) };
  }

  return {
    cutOff,
    gone,
    async cut() {
      const partition = Math.floor(random() * 6);
      const count = 1 + Math.floor(random() * BATCHES_MAX);
      const brokers = kafka.pids.map((_, broker) => broker);
      // Before, since what is committed afterwards may be about other messages at the same offsets.
      const { offset } = await until('the committed offset', async () => await storedUpTo(partition));
      await Promise.all(brokers.map((broker) => kafka.kill9(broker)));
      const lost = await cutOffLog(kafkaDir, brokers.length, `${topic}-${partition}`, count);
      // What is committed is stored.
      for (const key of lost ? keysSince(lost, offset) : []) cutOff.add(key);
      for (const key of lost ? keysSince(lost, 0n) : []) gone.add(key);
      isCut ||= lost !== undefined;
      await Promise.all(brokers.map((broker) => kafka.restart(broker)));
    },
    async resume() {
      if (isCut) await resumeHalted(pipeline.environment);
    },
  };
}

import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { configSchema } from '@sluice/writer/config';
import { until } from './service.ts';

/** Waits until the writers of a pipeline have committed the end of every partition, so that everything is stored. */
export async function waitUntilCommitted(kafkaBrokers: readonly string[], pipelineName: string): Promise<void> {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: `${pipelineName}.`,
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  const groupId = `${pipelineName}-writer`;
  const topics = Object.values(topicNames(config));
  await withAdmin(createKafka(config, 'test', createLogger('test', 'silent')), async (admin) => {
    const behind = async () => {
      const committed = await admin.fetchOffsets({ groupId, topics });
      const ends = await Promise.all(topics.map((topic) => admin.fetchTopicOffsets(topic)));
      const offsets = new Map(
        committed.flatMap(({ topic, partitions }) => partitions.map((at) => [`${topic}/${at.partition}`, at.offset])),
      );
      return topics.flatMap((topic, index) =>
        (ends[index] ?? [])
          .filter(({ partition, high }) => high !== '0' && offsets.get(`${topic}/${partition}`) !== high)
          .map(({ partition }) => `${topic}/${partition}`),
      );
    };
    // A broker that was just started may refuse to say where its partitions end.
    await until('every offset to be committed', async () => (await behind().catch(() => undefined))?.length === 0);
  });
}

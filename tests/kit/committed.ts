import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { topicNames, withAdmin } from '@sluice/shared/kafka/topics';
import { isInRange, type PartitionRange } from '@sluice/shared/servers/partition-range';
import { explain, until } from '@sluice/shared/testing/until';
import { configSchema } from '@sluice/writer/config';
import type { Admin } from 'kafkajs';

/**
 * Waits until the writers of a pipeline have committed the end of every partition, so that everything is stored.
 *
 * @param range the partitions that they store; default: all
 */
export async function waitUntilCommitted(
  kafkaBrokers: readonly string[],
  pipelineName: string,
  groupId = `${pipelineName}-writer`,
  range?: PartitionRange,
): Promise<void> {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: `${pipelineName}.`,
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  const topics = Object.values(topicNames(config));
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  let last: readonly string[] | undefined;
  await until('every offset to be committed', async () => {
    // A broker that was just started may refuse to say where its partitions end. An admin client of kafkajs believes for
    // five minutes what it was told of leaders, so each try has its own.
    last = await withAdmin(kafka, (admin) => partitionsBehind(admin, { groupId, topics, range })).catch(
      () => undefined,
    );
    return last?.length === 0;
  }).catch(explain(() => `behind are ${last?.join(', ') ?? 'unknown partitions'}`));
}

/** Returns the partitions whose end is not committed, with both offsets. */
async function partitionsBehind(
  admin: Admin,
  {
    groupId,
    topics,
    range,
  }: { readonly groupId: string; readonly topics: readonly string[]; readonly range: PartitionRange | undefined },
): Promise<readonly string[]> {
  const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
  const ends = await Promise.all(topics.map((topic) => admin.fetchTopicOffsets(topic)));
  const offsets = new Map(
    committed.flatMap(({ topic, partitions }) => partitions.map((at) => [`${topic}/${at.partition}`, at.offset])),
  );
  return topics.flatMap((topic, index) =>
    (ends[index] ?? [])
      .filter(
        ({ partition, high }) =>
          isInRange(range, partition) && high !== '0' && offsets.get(`${topic}/${partition}`) !== high,
      )
      .map(({ partition, high }) => `${topic}/${partition}: ${offsets.get(`${topic}/${partition}`)} of ${high}`),
  );
}

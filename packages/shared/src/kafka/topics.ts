import type { Admin, Kafka } from 'kafkajs';
import type { KafkaConfig } from '../config.ts';

/** The topics' names: `events` carries events (and deletions of users), `entities` changes of users and organizations. */
export function topicNames(config: Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX'>): { events: string; entities: string } {
  return { events: `${config.KAFKA_TOPIC_PREFIX}events`, entities: `${config.KAFKA_TOPIC_PREFIX}entities` };
}

/** How many partitions each topic has. */
export interface PartitionCounts {
  readonly events: number;
  readonly entities: number;
}

/** The brokers' clocks stamp the records: the lag of the writers is measured by it, and clocks are compared with it. */
const TOPIC_CONFIG = [{ name: 'message.timestamp.type', value: 'LogAppendTime' }];

/**
 * Creates the topics that are missing, and gives the partition counts of both. An existing topic is left as it is and
 * needs no right to create. Several services may do it at once.
 *
 * @throws kafkajs's errors when no broker answers or a topic is missing and may not be created
 */
export async function ensureTopics(kafka: Kafka, config: KafkaConfig): Promise<PartitionCounts> {
  const names = topicNames(config);
  return await withAdmin(kafka, async (admin) => {
    const found = await countAll(admin, names);
    const missing = [names.events, names.entities].filter((topic) => !found.has(topic));
    if (missing.length > 0) await createTopics(admin, missing, config);
    const counts = missing.length > 0 ? await countAll(admin, names) : found;
    const [events, entities] = [counts.get(names.events), counts.get(names.entities)];
    if (events === undefined || entities === undefined)
      throw new Error('the topics that were created are not there yet');
    return { events, entities };
  });
}

/** The partition counts of those topics that exist. An admin client of kafkajs never creates a topic by asking. */
async function countAll(
  admin: Admin,
  { events, entities }: ReturnType<typeof topicNames>,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const topic of [events, entities]) {
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      for (const { name, partitions } of topics) counts.set(name, partitions.length);
    } catch (error) {
      if ((error as { type?: unknown }).type !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error;
    }
  }
  return counts;
}

async function createTopics(admin: Admin, topics: readonly string[], config: KafkaConfig): Promise<void> {
  await admin.createTopics({
    waitForLeaders: true,
    topics: topics.map((topic) => ({
      topic,
      numPartitions: config.KAFKA_PARTITIONS,
      configEntries: TOPIC_CONFIG,
      ...(config.KAFKA_REPLICATION_FACTOR && { replicationFactor: config.KAFKA_REPLICATION_FACTOR }),
    })),
  });
}

/** Runs `work` with a connected admin client and disconnects it, whatever happens. */
export async function withAdmin<Result>(kafka: Kafka, work: (admin: Admin) => Promise<Result>): Promise<Result> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

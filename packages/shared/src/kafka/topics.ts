import type { Admin, Kafka } from 'kafkajs';
import type { KafkaConfig } from '../config.ts';

/** The topics' names: `events` carries events (and deletions of users), `entities` changes of users and organizations. */
export function topicNames(config: Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX'>): { events: string; entities: string } {
  return { events: `${config.KAFKA_TOPIC_PREFIX}events`, entities: `${config.KAFKA_TOPIC_PREFIX}entities` };
}

/**
 * Creates the topics that are missing; existing ones are left as they are. Several services may do it at once.
 *
 * @throws kafkajs's errors when no broker answers
 */
export async function ensureTopics(kafka: Kafka, config: KafkaConfig): Promise<void> {
  await withAdmin(kafka, async (admin) => {
    await admin.createTopics({
      waitForLeaders: true,
      topics: Object.values(topicNames(config)).map((topic) => ({
        topic,
        numPartitions: config.KAFKA_PARTITIONS,
        ...(config.KAFKA_REPLICATION_FACTOR && { replicationFactor: config.KAFKA_REPLICATION_FACTOR }),
      })),
    });
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

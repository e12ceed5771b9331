import type { Admin, ITopicConfig, Kafka } from 'kafkajs';
import type { KafkaConfig } from '../config.ts';

/** The names of the topics: `events` has events and deletions of users, `entities` changes of users and organizations. */
export function topicNames(config: Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX'>): { events: string; entities: string } {
  return { events: `${config.KAFKA_TOPIC_PREFIX}events`, entities: `${config.KAFKA_TOPIC_PREFIX}entities` };
}

/** The name of the topic to which ingest-api sends empty records to compare its clock with the broker's. */
export function clockTopicName({ KAFKA_TOPIC_PREFIX }: Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX'>): string {
  return `${KAFKA_TOPIC_PREFIX}clock`;
}

/** How often each ingest-api sends a record to that topic, in milliseconds. */
export const CLOCK_INTERVAL_MS = 30_000;

/** Brokers stamp records with their clock. The lag of the writers and the comparison of clocks depend on it. */
const STAMPED_BY_BROKER = { name: 'message.timestamp.type', value: 'LogAppendTime' };

const HOUR_MS = 3_600_000;

/**
 * Creates the topics that are missing. It leaves an existing topic as it is, and then needs no right to create topics.
 * Several services may call it at the same time.
 *
 * @throws kafkajs's errors when no broker responds, or when a topic is missing and may not be created
 */
export async function ensureTopics(kafka: Kafka, config: KafkaConfig): Promise<void> {
  const wanted: ITopicConfig[] = [
    ...Object.values(topicNames(config)).map((topic) => ({
      topic,
      numPartitions: config.KAFKA_PARTITIONS,
      configEntries: [STAMPED_BY_BROKER],
    })),
    {
      topic: clockTopicName(config),
      numPartitions: 1,
      configEntries: [STAMPED_BY_BROKER, { name: 'retention.ms', value: String(HOUR_MS) }],
    },
  ];
  const replication = config.KAFKA_REPLICATION_FACTOR && { replicationFactor: config.KAFKA_REPLICATION_FACTOR };
  await withAdmin(kafka, async (admin) => {
    const missing: ITopicConfig[] = [];
    for (const topic of wanted) if (!(await exists(admin, topic.topic))) missing.push({ ...topic, ...replication });
    if (missing.length > 0) await admin.createTopics({ waitForLeaders: true, topics: missing });
  });
}

/** Whether the topic exists. Unlike a producer, an admin client never creates a topic when it reads metadata. */
async function exists(admin: Admin, topic: string): Promise<boolean> {
  try {
    await admin.fetchTopicMetadata({ topics: [topic] });
    return true;
  } catch (error) {
    // After its last retry kafkajs wraps the error.
    const { cause = error } = error as { cause?: unknown };
    const { type } = cause as { type?: unknown };
    if (type !== 'UNKNOWN_TOPIC_OR_PARTITION' && type !== 'LEADER_NOT_AVAILABLE') throw error;
    return type === 'LEADER_NOT_AVAILABLE';
  }
}

/** Runs `work` with a connected admin client, and disconnects it even when `work` throws. */
export async function withAdmin<Result>(kafka: Kafka, work: (admin: Admin) => Promise<Result>): Promise<Result> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

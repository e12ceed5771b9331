import type { Admin, ITopicConfig, Kafka } from 'kafkajs';
import type { KafkaConfig } from '../config.ts';

/** The topics' names: `events` carries events (and deletions of users), `entities` changes of users and organizations. */
export function topicNames(config: Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX'>): { events: string; entities: string } {
  return { events: `${config.KAFKA_TOPIC_PREFIX}events`, entities: `${config.KAFKA_TOPIC_PREFIX}entities` };
}

/** The topic to which ingest-api sends empty records, to compare its clock with that of the broker that stamps them. */
export function clockTopicName({ KAFKA_TOPIC_PREFIX }: Pick<KafkaConfig, 'KAFKA_TOPIC_PREFIX'>): string {
  return `${KAFKA_TOPIC_PREFIX}clock`;
}

/** The brokers' clocks stamp the records: the lag of the writers is measured by it, and clocks are compared with it. */
const STAMPED_BY_BROKER = { name: 'message.timestamp.type', value: 'LogAppendTime' };

const HOUR_MS = 3_600_000;

/**
 * Creates the topics that are missing. An existing topic is left as it is and needs no right to create. Several services
 * may do it at once.
 *
 * @throws kafkajs's errors when no broker answers or a topic is missing and may not be created
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

/** An admin client of kafkajs never creates a topic by asking for it. */
async function exists(admin: Admin, topic: string): Promise<boolean> {
  try {
    await admin.fetchTopicMetadata({ topics: [topic] });
    return true;
  } catch (error) {
    // kafkajs wraps what it has retried in vain.
    const { cause = error } = error as { cause?: unknown };
    const { type } = cause as { type?: unknown };
    if (type !== 'UNKNOWN_TOPIC_OR_PARTITION' && type !== 'LEADER_NOT_AVAILABLE') throw error;
    return type === 'LEADER_NOT_AVAILABLE';
  }
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

import kafkajs, { type Admin, type IResourceConfigEntry, type ITopicConfig, type Kafka } from 'kafkajs';
import type { KafkaConfig } from '../config/config.ts';

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

/** Why nothing works with a topic whose records Kafka acknowledges without its own time, and what to do. */
export function withoutAppendTime(topic: string): string {
  return (
    `Kafka acknowledges records of ${topic} without its own time: set message.timestamp.type=LogAppendTime for this topic; ` +
    'where it is set, use a broker that answers with it (docs/operate/engines.md)'
  );
}

const HOUR_MS = 3_600_000;

/**
 * How many replicas a topic needs so that the loss of a broker neither loses accepted rows nor stops ingest, and how many of
 * them must have a row before its `202`.
 */
export const REPLICAS_MIN = 3;
export const IN_SYNC_MIN = 2;

/** Returns the topics that Sluice creates, but for what {@link ensureTopics} adds by the defaults of the brokers. */
export function wantedTopics(config: KafkaConfig): ITopicConfig[] {
  const replication = config.KAFKA_REPLICATION_FACTOR && { replicationFactor: config.KAFKA_REPLICATION_FACTOR };
  const ofRows = Object.values(topicNames(config)).map((topic) => ({
    topic,
    numPartitions: config.KAFKA_PARTITIONS,
    configEntries: [STAMPED_BY_BROKER],
    ...replication,
  }));
  const ofClock = {
    topic: clockTopicName(config),
    numPartitions: 1,
    configEntries: [STAMPED_BY_BROKER, { name: 'retention.ms', value: String(HOUR_MS) }],
    ...replication,
  };
  return [...ofRows, ofClock];
}

/**
 * Creates the topics that are missing. Those of rows that get three replicas or more acknowledge what two of them have. It leaves an existing topic as it is, and then needs no right to create topics.
 * Several services may call it at the same time.
 *
 * @throws kafkajs's errors when no broker responds, or when a topic is missing and may not be created
 */
export async function ensureTopics(kafka: Kafka, config: KafkaConfig): Promise<void> {
  const ofRows = Object.values(topicNames(config));
  const wanted = wantedTopics(config);
  await withAdmin(kafka, async (admin) => {
    const missing: ITopicConfig[] = [];
    for (const topic of wanted) if (!(await exists(admin, topic.topic))) missing.push(topic);
    if (missing.length === 0) return;
    const { entries } = await readNewTopic(admin, config);
    for (const topic of missing) {
      if (ofRows.includes(topic.topic)) topic.configEntries = [...(topic.configEntries ?? []), ...entries];
    }
    await admin.createTopics({ waitForLeaders: true, topics: missing });
  });
}

/** What a new topic of rows gets, by the defaults of the brokers and what {@link ensureTopics} adds. */
export interface NewTopic {
  /** `undefined` where neither `KAFKA_REPLICATION_FACTOR` nor the brokers say it: that takes the right `DescribeConfigs` on the cluster. */
  readonly replicas: number | undefined;
  readonly inSyncMin: number;
  /** The settings that are added. */
  readonly entries: readonly IResourceConfigEntry[];
}

/** Returns what a topic of rows gets that is created now. @throws kafkajs's errors */
export async function readNewTopic(
  admin: Admin,
  config: Pick<KafkaConfig, 'KAFKA_REPLICATION_FACTOR'>,
): Promise<NewTopic> {
  const defaults = await brokerDefaults(admin);
  const byDefault = defaults.get('default.replication.factor');
  const replicas = config.KAFKA_REPLICATION_FACTOR ?? (byDefault === undefined ? undefined : Number(byDefault));
  const inSyncMin = Number(defaults.get('min.insync.replicas') ?? 1);
  if ((replicas ?? 1) < REPLICAS_MIN || inSyncMin >= IN_SYNC_MIN) return { replicas, inSyncMin, entries: [] };
  const entries = [{ name: 'min.insync.replicas', value: String(IN_SYNC_MIN) }];
  return { replicas, inSyncMin: IN_SYNC_MIN, entries };
}

/** Reads what topics get that do not say otherwise; nothing without the right `DescribeConfigs` on the cluster. */
async function brokerDefaults(admin: Admin): Promise<ReadonlyMap<string, string>> {
  try {
    const { brokers } = await admin.describeCluster();
    const resources = brokers.slice(0, 1).map(({ nodeId }) => ({
      type: kafkajs.ConfigResourceTypes.BROKER,
      name: String(nodeId),
      configNames: ['default.replication.factor', 'min.insync.replicas'],
    }));
    const response = await admin.describeConfigs({ resources, includeSynonyms: false });
    const entries = response.resources.flatMap(({ configEntries }) => configEntries);
    return new Map(entries.map(({ configName, configValue }) => [configName, configValue]));
  } catch (error) {
    if ((error as { readonly type?: unknown }).type !== 'CLUSTER_AUTHORIZATION_FAILED') throw error;
    return new Map();
  }
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

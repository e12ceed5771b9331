import { atServer } from '@sluice/servers/state/connected-server';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { KafkaConfig } from '@sluice/shared/config';
import {
  CLOCK_INTERVAL_MS,
  clockTopicName,
  topicNames,
  withAdmin,
  withoutAppendTime,
} from '@sluice/shared/kafka/topics';
import { type PartitionCount, readPartitionCounts, recordGrowth } from '@sluice/storage/clickhouse/partition-count';
import { nameOf } from '@sluice/storage/protocol/position';
import type { Admin, Kafka } from 'kafkajs';
import type { PartitionStatus, Partitions } from './partitions.ts';

/**
 * How long no ingest-api has sent a record to the topic of the clock when all of them have stopped, in milliseconds: the
 * last record may be as old as the interval when one stops, and it may take its time for that.
 */
const SILENCE_MS = 2 * CLOCK_INTERVAL_MS;

/** Marks this command's own records in the topic of the clock. */
const OWN_KEY = 'grow-partitions';

export interface TopicGrowth {
  readonly topic: string;
  /** How many partitions the topic has in Kafka. */
  readonly inKafka: number;
  /** Over how many the stored rows are spread, according to ClickHouse: two numbers when a growth was interrupted. */
  readonly recorded: readonly number[];
}

/** A ClickHouse server with the group that stores into it. */
export interface GrowingDatabase {
  /** Undefined where there is only one. */
  readonly name: string | undefined;
  readonly groupId: string;
  /** `all`, or a range such as `0-23`. */
  readonly range: string;
  readonly client: ClickHouseClient;
  readonly partitions: Pick<Partitions, 'list'>;
}

/** Spreads rows over more partitions. Each step may be repeated, so a run that was interrupted is completed by another. */
export class PartitionGrowth {
  readonly #kafka: Kafka;
  readonly #clockTopic: string;
  readonly #topics: readonly string[];
  /** All that are fed from the topics. */
  readonly #databases: readonly GrowingDatabase[];

  constructor(kafka: Kafka, config: KafkaConfig, databases: readonly GrowingDatabase[]) {
    this.#kafka = kafka;
    this.#clockTopic = clockTopicName(config);
    this.#topics = Object.values(topicNames(config));
    this.#databases = databases;
  }

  /**
   * Returns why the partitions can never be spread anew; `undefined` when they can. An event is stored where the partition of
   * its uuid is, and in another number of partitions the repeat of an event may belong to another server than its original.
   */
  get refusal(): string | undefined {
    const ranges = new Set(this.#databases.map(({ range }) => range));
    if (ranges.size <= 1) return undefined;
    return (
      `The servers have several ranges of partitions (${[...ranges].join(', ')}): repeats of events could come to another ` +
      'server than their originals.'
    );
  }

  /** Returns the topics as they are. @throws kafkajs's and ClickHouse's errors, also when there is no such topic */
  async state(): Promise<TopicGrowth[]> {
    const recorded = await this.#ofEach(({ client }) => readPartitionCounts(client, this.#topics));
    const { topics } = await withAdmin(this.#kafka, (admin) => admin.fetchTopicMetadata({ topics: [...this.#topics] }));
    return topics.map(({ name: topic, partitions }) => ({
      topic,
      inKafka: partitions.length,
      recorded: numbersOf(recorded.flat().filter((count) => count.topic === topic)),
    }));
  }

  /**
   * Returns why rows may not be spread anew now, each reason in a sentence. Otherwise a repeat of an event could come
   * through another partition than its original, to another writer, and both would be stored.
   *
   * @throws kafkajs's and ClickHouse's errors
   */
  async obstacles(): Promise<string[]> {
    const lists = await this.#ofEach(async ({ name, partitions }) => ({ name, statuses: await partitions.list() }));
    const topics = await this.state();
    // What is in others came after the growth that is repeated now, also in a database from an older backup.
    const isSpreadOver = ({ topic, partition }: PartitionStatus) =>
      topics.some((known) => known.topic === topic && partition < Math.min(...known.recorded));
    const [first] = lists;
    return [
      ...(await withAdmin(this.#kafka, (admin) => this.#runningWriters(admin))),
      ...(await this.#runningIngestApis()),
      ...missingPartitions(first?.statuses ?? [], topics),
      ...lists.flatMap(({ name, statuses }) =>
        statuses
          .filter(isSpreadOver)
          .flatMap((status) => waiting(status, name === undefined ? '' : ` (server ${name})`)),
      ),
    ];
  }

  /** Creates the partitions that a topic lacks. @throws kafkajs's errors */
  async createPartitions(topic: string, count: number): Promise<void> {
    await withAdmin(this.#kafka, (admin) => admin.createPartitions({ topicPartitions: [{ topic, count }] }));
  }

  /**
   * Records the new number for both topics, on one server after the other.
   *
   * @param onRecorded called with the name of each server of several
   * @throws ClickHouse's errors
   */
  async record(count: number, onRecorded: (server: string) => void = () => {}): Promise<void> {
    for (const { name, client } of this.#databases) {
      await atServer(name, () => recordGrowth(client, this.#topics, count));
      if (name !== undefined) onRecorded(name);
    }
  }

  async #ofEach<Result>(read: (database: GrowingDatabase) => Promise<Result>): Promise<Result[]> {
    return await Promise.all(this.#databases.map((database) => atServer(database.name, () => read(database))));
  }

  async #runningWriters(admin: Admin): Promise<string[]> {
    // One group feeds all replicas.
    const { groups } = await admin.describeGroups([...new Set(this.#databases.map(({ groupId }) => groupId))]);
    return groups.flatMap(({ groupId, members }) =>
      members.length === 0
        ? []
        : [`Writers are running: the consumer group ${groupId} has ${members.length} members. Stop all writers.`],
    );
  }

  /** Every ingest-api sends a record to the topic of the clock, twice a minute. The broker stamps it. */
  async #runningIngestApis(): Promise<string[]> {
    const producer = this.#kafka.producer({ allowAutoTopicCreation: false });
    await producer.connect();
    const [sent] = await producer
      .send({ topic: this.#clockTopic, acks: -1, messages: [{ key: OWN_KEY, value: '' }] })
      .finally(() => producer.disconnect());
    const now = Number(sent?.logAppendTime ?? -1);
    if (now < 0) throw new Error(withoutAppendTime(this.#clockTopic));
    const last = await withAdmin(this.#kafka, (admin) => this.#lastClockRecord(admin, BigInt(sent?.baseOffset ?? 0)));
    const silentMs = last === undefined ? Number.POSITIVE_INFINITY : now - last;
    if (silentMs > SILENCE_MS) return [];
    const seconds = (ms: number) => `${Math.ceil(ms / 1_000)} s`;
    return [
      `An ingest-api was running ${seconds(silentMs)} ago. Stop all ingest-apis, and wait for ${seconds(SILENCE_MS)} after the last one has ended.`,
    ];
  }

  /** Returns when the last record of an ingest-api before an offset came, in milliseconds since 1970. */
  async #lastClockRecord(admin: Admin, before: bigint): Promise<number | undefined> {
    const topic = this.#clockTopic;
    const [bounds] = await admin.fetchTopicOffsets(topic);
    const low = BigInt(bounds?.low ?? 0);
    for (let offset = before - 1n; offset >= low; offset -= 1n) {
      const record = await admin.fetchRecord({ topic, partition: 0, offset: String(offset) });
      if (record && record.key?.toString() !== OWN_KEY) return Number(record.timestamp);
    }
    return undefined;
  }
}

/** Returns a sentence for each topic with partitions without a leader: these are in no list, and may hold messages. */
function missingPartitions(statuses: readonly PartitionStatus[], topics: readonly TopicGrowth[]): string[] {
  return topics.flatMap(({ topic, inKafka }) => {
    const known = statuses.filter((status) => status.topic === topic).length;
    return known < inKafka ? [`${inKafka - known} partitions of ${topic} have no leader. Mend the brokers.`] : [];
  });
}

/** A server that lags behind the others in a growth that was interrupted has the smaller number. */
function numbersOf(counts: readonly PartitionCount[]): number[] {
  return [...new Set(counts.map(({ partitions }) => partitions))].sort((one, other) => one - other);
}

/** Returns what keeps a partition from being drained. @param of says of which server, if there are several */
function waiting(status: PartitionStatus, of: string): string[] {
  const { low, high, stored, committed, halt } = status;
  const name = `${nameOf(status)}${of}`;
  if (halt) return [`${name} is halted: ${halt.reason}. Resume it, and let the writers store what it holds.`];
  // A writer goes on at the lower one of the two.
  if ([stored, committed].every((offset) => (offset ?? low) >= high)) return [];
  return [`${name} has messages that are not stored. Start the writers until everything is, and stop them again.`];
}

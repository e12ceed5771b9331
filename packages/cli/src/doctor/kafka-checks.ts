import { connectionHint } from '@sluice/shared/base/connection-hints';
import { createLogger } from '@sluice/shared/base/log';
import { unlessAborted } from '@sluice/shared/base/unless-aborted';
import type { KafkaConfig } from '@sluice/shared/config';
import { createKafka, recentHint } from '@sluice/shared/kafka/client';
import { readReplicas, shortcomings } from '@sluice/shared/kafka/topic-durability';
import { clockTopicName, topicNames, wantedTopics } from '@sluice/shared/kafka/topics';
import { readLag, totalLag } from '@sluice/storage/kafka/lag';
import { leaderEpochOf } from '@sluice/storage/protocol/position';
import kafkajs, { type Admin, type Kafka, type KafkaMessage } from 'kafkajs';
import { checkReleases } from './broker-release.ts';
import { type Check, type Finding, note, ok, reasonOf, wrong } from './check.ts';
import type { Clocks } from './clocks.ts';
import type { DoctorConfig, ServiceName } from './config.ts';
import {
  checkRetention,
  checkSizes,
  checkTimestamps,
  describeReplicas,
  foreseeReplicas,
  type Topic,
} from './topic-checks.ts';

/** From when on writers are behind, in milliseconds. */
const BEHIND_MS = 60_000;

/** How many records are sent one after the other. */
const RECORDS = 50;

const SILENT = createLogger('sluice-doctor', 'silent');

/** By how much the records that are sent say to be older than they are, in milliseconds. */
const PRODUCER_BEHIND_MS = 60_000;

/** A partition that no topic has. */
const NO_PARTITION = 1_000_000;

const ADVERTISED =
  'Set advertised.listeners of the brokers to addresses that the services can reach, and start brokers that are away.';

const RIGHTS = 'docs/operate/secure.md#kafka lists the rights';

/** What Sluice relies on in Kafka. */
export class KafkaChecks implements AsyncDisposable {
  readonly #config: DoctorConfig & KafkaConfig;
  readonly #services: readonly ServiceName[];
  readonly #clocks: Clocks;
  readonly #kafka: Kafka;
  readonly #admin: Admin;
  #topics: readonly Topic[] = [];
  /** The last record that was sent, with the time of its producer, and the one that it was acknowledged with. */
  #sent: { readonly offset: string; readonly timestamp: string; readonly acknowledged: string } | undefined;
  #isClosed = false;

  constructor(config: DoctorConfig & KafkaConfig, services: readonly ServiceName[], clocks: Clocks) {
    this.#config = config;
    this.#services = services;
    this.#clocks = clocks;
    this.#kafka = clientOf(config);
    this.#admin = this.#kafka.admin({ retry: { initialRetryTime: 100, retries: 2 } });
  }

  get checks(): readonly Check[] {
    const [reached, topics, settings] = ['kafka.reached', 'kafka.topics', 'kafka.settings'];
    const writes = this.#services.includes('ingest-api');
    const reads = this.#services.includes('writer');
    return [
      {
        name: reached,
        why: 'What is accepted is kept in Kafka first: without it every submission gets 503.',
        run: () => this.#reach(),
      },
      {
        name: 'kafka.brokers',
        why: 'Clients connect to the addresses that the brokers give (advertised.listeners), not to KAFKA_BROKERS alone.',
        needs: [reached],
        run: () => this.#reachBrokers(),
      },
      {
        name: 'kafka.version',
        why: 'Releases differ in what they keep and answer; tests use some of them.',
        needs: ['kafka.brokers'],
        run: async (signal) => checkReleases(this.#config, (await this.#admin.describeCluster()).brokers, signal),
      },
      {
        name: topics,
        why: 'Rows are spread over KAFKA_PARTITIONS partitions of two topics, and a third one compares the clocks.',
        needs: ['kafka.brokers'],
        run: () => this.#readTopics(),
      },
      {
        name: settings,
        why: 'What a 202 rests on, and how long it is kept, are settings of the topics.',
        needs: [topics],
        run: this.#ofTopics(() => this.#readSettings()),
      },
      {
        name: 'kafka.replicas',
        why: 'A 202 rests on the replicas that have the row.',
        needs: [settings],
        run: () => this.#checkReplicas(),
      },
      {
        name: 'kafka.timestamps',
        why: 'The lag of the writers and the comparison of clocks need the time at which the broker appended a record.',
        needs: [settings],
        run: this.#ofTopics(async () => checkTimestamps(this.#topics)),
      },
      {
        name: 'kafka.sizes',
        why: 'ingest-api sends batches of up to a mebibyte; larger events than a topic takes are refused.',
        needs: [settings],
        run: this.#ofTopics(async () => checkSizes(this.#existing)),
      },
      {
        name: 'kafka.retention',
        why: 'Kafka deletes accepted rows after their retention, stored or not: for so long ClickHouse may be away.',
        needs: [settings],
        run: this.#ofTopics(async () => checkRetention(this.#existing)),
      },
      ...(writes ? this.#checksOfSending(topics) : []),
      ...(reads ? this.#checksOfReading(topics) : []),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#admin.disconnect();
  }

  #checksOfSending(topics: string): Check[] {
    return [
      {
        name: 'kafka.write',
        why: 'ingest-api writes to all three topics.',
        needs: [topics],
        run: this.#ofTopics(() => this.#checkWrite()),
      },
      {
        name: 'kafka.records',
        why: 'Records have to be acknowledged in their order, with the time of the broker, and soon: each 202 waits for one.',
        needs: ['kafka.write'],
        run: this.#ofTopics((signal) => this.#sendRecords(signal)),
      },
    ];
  }

  #checksOfReading(topics: string): Check[] {
    return [
      {
        name: 'kafka.read',
        why: 'The writers read both topics of rows.',
        needs: [topics],
        run: this.#ofTopics(() => this.#checkRead()),
      },
      {
        name: 'kafka.group',
        why: 'The writers share the partitions as a consumer group, and commit with an id of the database how far they are.',
        needs: ['kafka.read'],
        run: this.#ofTopics((signal) => this.#checkGroup(signal)),
      },
      {
        name: 'kafka.fetched',
        why: 'A log that lost its end is noticed by the epochs of its leaders, and the lag is measured by the time of records.',
        needs: ['kafka.read'],
        run: this.#ofTopics(() => this.#checkFetched()),
      },
      {
        name: 'kafka.lag',
        why: 'What the writers have not stored is not served, and is lost when Kafka deletes it.',
        needs: ['kafka.group'],
        run: this.#ofTopics(() => this.#checkLag()),
      },
    ];
  }

  /** What is seen only in topics that exist. Until all do, a service has not started yet. */
  #ofTopics(run: Check['run']): Check['run'] {
    return async (signal) =>
      this.#topics.length < wantedTopics(this.#config).length
        ? note('the topics do not exist yet', 'Run doctor again when a service has created them.')
        : await run(signal);
  }

  get #rowTopics(): readonly string[] {
    return Object.values(topicNames(this.#config));
  }

  /** The topics of rows that exist. */
  get #existing(): readonly Topic[] {
    return this.#topics.filter(({ name }) => this.#rowTopics.includes(name));
  }

  async #reach(): Promise<Finding> {
    const address = this.#config.KAFKA_BROKERS.join(', ');
    try {
      await this.#admin.connect();
      // Who was interrupted meanwhile would leave the connection open.
      if (this.#isClosed) await this.#admin.disconnect();
      const { brokers } = await this.#admin.describeCluster();
      const user = this.#config.KAFKA_SASL_USERNAME;
      return ok(`${counted(brokers.length, 'broker')} at ${address}${user === undefined ? '' : `, as ${user}`}`);
    } catch (error) {
      const broker = brokerOf(error);
      if (broker !== undefined && !this.#config.KAFKA_BROKERS.includes(broker))
        return wrong(`${address} gives the address ${broker}, which cannot be reached: ${reasonOf(error)}`, ADVERTISED);
      const hint = connectionHint(error) ?? recentHint(this.#kafka);
      return wrong(
        `${address} cannot be reached: ${reasonOf(error)}`,
        hint ?? 'See whether Kafka runs, and check KAFKA_BROKERS.',
      );
    }
  }

  async #reachBrokers(): Promise<Finding> {
    const { brokers } = await this.#admin.describeCluster();
    const failures = await Promise.all(
      brokers.map(async ({ host, port }) => {
        const address = `${host}:${port}`;
        const kafka = clientOf({ ...this.#config, KAFKA_BROKERS: [address] });
        const admin = kafka.admin({ retry: { retries: 1 } });
        const failure = await admin.connect().then(
          () => [],
          (error) => [`${address} (${reasonOf(error)})`],
        );
        await admin.disconnect();
        return failure;
      }),
    );
    const unreached = failures.flat();
    if (unreached.length === 0) return ok(`all ${brokers.length} answer at the addresses that they give`);
    return wrong(`${unreached.join(', ')} cannot be reached from here`, ADVERTISED);
  }

  async #readTopics(): Promise<Finding> {
    const wanted = wantedTopics(this.#config);
    const visible = await this.#admin.listTopics();
    const present = wanted.map(({ topic }) => topic).filter((topic) => visible.includes(topic));
    const { topics } = present.length > 0 ? await this.#admin.fetchTopicMetadata({ topics: present }) : { topics: [] };
    this.#topics = present.flatMap((topic) => topics.filter(({ name }) => name === topic));
    const absent = wanted.filter(({ topic }) => !present.includes(topic));
    const problems = [
      ...(await this.#problemsOfAbsent(absent)),
      ...this.#existing.flatMap(({ name, partitions }) => {
        const expected = this.#config.KAFKA_PARTITIONS;
        const counts = `${name} has ${partitions.length} partitions, and KAFKA_PARTITIONS is ${expected}`;
        return partitions.length === expected ? [] : [`${counts}: set it alike for all services`];
      }),
      ...topics.flatMap(({ name, partitions }) => {
        const without = partitions.filter(({ leader }) => leader < 0).length;
        return without === 0 ? [] : [`${name} has ${counted(without, 'partition')} without a leader`];
      }),
    ];
    if (problems.length > 0)
      return wrong(problems.join('; '), `See docs/operate/configuration.md#partitions; ${RIGHTS}.`);
    if (absent.length === 0) return ok(`${present.join(', ')}, with ${this.#config.KAFKA_PARTITIONS} partitions`);
    const names = absent.map(({ topic }) => topic).join(', ');
    return note(
      `not there yet, and may be created: ${names}`,
      'Run doctor again when a service has created them: their settings can only be seen then.',
    );
  }

  /** Returns why topics that are not seen cannot be used. Kafka is asked whether it would create them, and does not. */
  async #problemsOfAbsent(absent: ReturnType<typeof wantedTopics>): Promise<string[]> {
    const problems: string[] = [];
    for (const wanted of absent) {
      const request = { topics: [wanted], validateOnly: true, waitForLeaders: false };
      const type = await this.#admin.fetchTopicMetadata({ topics: [wanted.topic] }).then(() => undefined, typeOf);
      if (type === 'TOPIC_AUTHORIZATION_FAILED') problems.push(`the right Describe is missing for ${wanted.topic}`);
      else {
        const refusal = await this.#admin.createTopics(request).then(() => undefined, typeOf);
        if (refusal !== undefined)
          problems.push(`${wanted.topic} does not exist, and Kafka would not create it (${refusal})`);
      }
    }
    return problems;
  }

  async #readSettings(): Promise<Finding> {
    const resources = this.#topics.map(({ name }) => ({ type: kafkajs.ConfigResourceTypes.TOPIC, name }));
    try {
      const response = await this.#admin.describeConfigs({ resources, includeSynonyms: false });
      for (const { resourceName, configEntries } of response.resources) {
        const topic = this.#topics.find(({ name }) => name === resourceName);
        if (topic) topic.settings = new Map(configEntries.map((entry) => [entry.configName, entry.configValue]));
      }
      return ok('the settings of the topics can be read');
    } catch (error) {
      if (typeOf(error) !== 'TOPIC_AUTHORIZATION_FAILED') throw error;
      return wrong(
        'the right DescribeConfigs is missing for the topics: whether they promise enough cannot be seen, also by the services',
        `Allow the account DescribeConfigs: ${RIGHTS}.`,
      );
    }
  }

  async #checkReplicas(): Promise<Finding> {
    const topics = this.#existing.map(({ name }) => name);
    const absent = this.#rowTopics.filter((topic) => !topics.includes(topic));
    if (absent.length > 0) return await foreseeReplicas(this.#admin, this.#config, absent);
    const replicas = await readReplicas(this.#admin, topics);
    const problems = shortcomings(replicas);
    if (problems.length > 0) return wrong(problems.join('; '), 'Change the topics: docs/operate/durability.md#kafka.');
    return ok(describeReplicas(replicas));
  }

  /** A record for a partition that does not exist is refused by the rights of the account first. */
  async #checkWrite(): Promise<Finding> {
    const missing: string[] = [];
    await this.#withProducer(async (producer) => {
      const { brokers } = await this.#admin.describeCluster();
      for (const { name: topic } of this.#topics) {
        const [result] = await producer.sendToBroker({
          ...{ nodeId: brokers[0]?.nodeId ?? 0, acks: -1, timeout: 5_000, compression: kafkajs.CompressionTypes.None },
          topicData: [{ topic, partitions: [{ partition: NO_PARTITION, messages: [{ value: '' }] }] }],
        });
        if (result?.error?.type === 'TOPIC_AUTHORIZATION_FAILED') missing.push(topic);
      }
    });
    if (missing.length > 0)
      return wrong(`the right Write is missing for ${missing.join(', ')}`, `Allow the account Write: ${RIGHTS}.`);
    return ok(`may write to ${this.#topics.map(({ name }) => name).join(', ')}`);
  }

  /** Sends empty records to the topic of the clock, as each ingest-api does. They are gone after an hour. */
  async #sendRecords(signal: AbortSignal): Promise<Finding> {
    const topic = clockTopicName(this.#config);
    const tookMs: number[] = [];
    const offsets: bigint[] = [];
    let isStamped = true;
    await this.#withProducer(async (producer) => {
      for (let index = 0; index < RECORDS && !signal.aborted; index += 1) {
        const startedAt = performance.now();
        const beforeMs = Date.now();
        const timestamp = String(beforeMs - PRODUCER_BEHIND_MS);
        const [record] = await producer.send({ topic, acks: -1, messages: [{ value: '', partition: 0, timestamp }] });
        const { baseOffset: offset = '-1', logAppendTime: acknowledged = '-1' } = record ?? {};
        this.#sent = { offset, timestamp, acknowledged };
        const took = performance.now() - startedAt;
        tookMs.push(took);
        offsets.push(BigInt(record?.baseOffset ?? -1));
        const brokerMs = Number(record?.logAppendTime ?? -1);
        if (brokerMs >= 0) this.#clocks.add({ of: 'Kafka', beforeMs, tookMs: took, theirMs: brokerMs });
        else isStamped = false;
      }
    });
    const isOrdered = offsets.every((offset, index) => index === 0 || offset > (offsets[index - 1] ?? 0n));
    if (!isOrdered)
      return wrong(
        'records that were acknowledged one after the other are not in this order',
        'Sluice needs a Kafka that keeps the order within a partition.',
      );
    if (!isStamped && this.#stampsConfigured(topic))
      return wrong(
        'an acknowledgement has no time of the broker, though the topic has LogAppendTime',
        'Use a version of this broker that answers with it (Redpanda: 25.3 or newer).',
      );
    const [p50, p99] = [0.5, 0.99].map((part) => quantile(tookMs, part).toFixed(1));
    return ok(`${RECORDS} records acknowledged in order, p50 ${p50} ms, p99 ${p99} ms`);
  }

  #stampsConfigured(topic: string): boolean {
    const settings = this.#topics.find(({ name }) => name === topic)?.settings;
    return settings?.get('message.timestamp.type') === 'LogAppendTime';
  }

  async #checkRead(): Promise<Finding> {
    const missing: string[] = [];
    for (const { name: topic } of this.#existing) {
      const [first] = await this.#admin.fetchTopicOffsets(topic);
      if (!first) continue;
      const { partition, high } = first;
      const type = await this.#admin.fetchRecord({ topic, partition, offset: high }).then(() => undefined, typeOf);
      if (type === 'TOPIC_AUTHORIZATION_FAILED') missing.push(topic);
    }
    if (missing.length > 0)
      return wrong(`the right Read is missing for ${missing.join(', ')}`, `Allow the account Read: ${RIGHTS}.`);
    return ok(`may read ${this.#existing.map(({ name }) => name).join(', ')}`);
  }

  /** Where no writer runs, it joins the group for a moment: otherwise nobody knows whether a writer may. */
  async #checkGroup(signal: AbortSignal): Promise<Finding> {
    const { KAFKA_GROUP_ID: groupId } = this.#config;
    try {
      const { groups } = await this.#admin.describeGroups([groupId]);
      const members = groups.flatMap((group) => group.members).length;
      const [events] = this.#existing;
      if (members === 0 && events) await this.#joinGroup(events.name, signal);
      const topics = this.#existing.map(({ name }) => name);
      const offsets = await this.#admin.fetchOffsets({ groupId, topics });
      const commits = offsets.flatMap(({ partitions }) => partitions).filter(({ offset }) => Number(offset) >= 0);
      const found = `${groupId} has ${counted(members, 'member')} and ${counted(commits.length, 'committed offset')}`;
      if (commits.length > 0 && commits.every(({ metadata }) => !metadata))
        return note(
          `${found}, all without metadata`,
          'Where writers run, see whether this broker keeps the metadata of commits: without them, two databases with one group are not noticed.',
        );
      return ok(found);
    } catch (error) {
      if (typeOf(error) !== 'GROUP_AUTHORIZATION_FAILED') throw error;
      return wrong(
        `the right Read is missing for the group ${groupId}`,
        `Allow the account Read on the group: ${RIGHTS}.`,
      );
    }
  }

  async #joinGroup(topic: string, signal: AbortSignal): Promise<void> {
    const consumer = this.#kafka.consumer({
      groupId: this.#config.KAFKA_GROUP_ID,
      allowAutoTopicCreation: false,
      // It leaves the group when a fetch ends.
      maxWaitTimeInMs: 100,
      retry: { retries: 1, restartOnFailure: async () => false },
    });
    const joined = Promise.withResolvers<void>();
    consumer.on('consumer.group_join', () => joined.resolve());
    consumer.on('consumer.crash', ({ payload }) => joined.reject(payload.error));
    // It may crash before anybody waits for it.
    joined.promise.catch(() => undefined);
    try {
      await consumer.connect();
      await consumer.subscribe({ topic });
      await consumer.run({ autoCommit: false, eachBatch: async () => undefined });
      await unlessAborted(signal, joined.promise);
    } finally {
      await consumer.disconnect();
    }
  }

  async #checkFetched(): Promise<Finding> {
    const found = await this.#newestRecord();
    if (!found) return note('no topic has a record yet', 'Run doctor again when something was sent.');
    const { topic, partition, record } = found;
    let isFoundByTime = true;
    const problems = [
      ...(leaderEpochOf(record) >= 0 ? [] : ['a fetched batch has no leader epoch']),
      ...(Number(record.timestamp) > 0 ? [] : ['a fetched record has no time']),
      ...((await this.#keepsTimeOfProducer())
        ? ['a fetched record has the time of its producer, though the topic has LogAppendTime']
        : []),
    ];
    if (Number(record.timestamp) > 0) {
      const offsets = await this.#admin.fetchTopicOffsetsByTimestamp(topic, Number(record.timestamp));
      const offset = BigInt(offsets.find((one) => one.partition === partition)?.offset ?? -1);
      const at = offset < 0n ? null : await this.#admin.fetchRecord({ topic, partition, offset: String(offset) });
      isFoundByTime =
        at !== null && offset <= BigInt(record.offset) && Number(at.timestamp) >= Number(record.timestamp);
    }
    if (problems.length > 0)
      return wrong(
        problems.join('; '),
        'Use another version of this broker: docs/operate/engines.md#kafka says what rests on it.',
      );
    if (isFoundByTime) return ok(`epoch ${leaderEpochOf(record)}, time and offsets by time of ${topic}/${partition}`);
    return note(
      'ListOffsets by time returns another offset than that of the first record since then',
      'Only sluice audit asks for offsets by time: do not trust what it takes for invented.',
    );
  }

  /** Whether the record that was sent has not got the time of the broker. It is not known where it cannot be read. */
  async #keepsTimeOfProducer(): Promise<boolean> {
    const topic = clockTopicName(this.#config);
    if (this.#sent === undefined || !this.#stampsConfigured(topic)) return false;
    const { offset, timestamp, acknowledged } = this.#sent;
    const record = await this.#admin.fetchRecord({ topic, partition: 0, offset }).catch(() => null);
    // A clock that is ahead may have made it the same as that of the broker.
    return record?.timestamp === timestamp && timestamp !== acknowledged;
  }

  async #checkLag(): Promise<Finding> {
    const lags = await readLag(this.#kafka, this.#config, this.#config.KAFKA_GROUP_ID, undefined);
    const { messages, ...total } = totalLag(lags);
    const seconds = Math.round(total.seconds);
    const found =
      messages === 0 ? 'everything is stored' : `${messages} messages are not stored, the oldest for ${seconds} s`;
    if (seconds * 1_000 < BEHIND_MS) return ok(found);
    return wrong(found, 'Start the writers, or see their log: docs/operate/alerts.md.');
  }

  /** Returns the newest record of any partition that has one. */
  async #newestRecord(): Promise<{ topic: string; partition: number; record: KafkaMessage } | undefined> {
    for (const { name: topic } of this.#topics) {
      for (const { partition, low, high } of await this.#admin.fetchTopicOffsets(topic)) {
        if (BigInt(high) <= BigInt(low)) continue;
        const offset = String(BigInt(high) - 1n);
        const record = await this.#admin.fetchRecord({ topic, partition, offset }).catch(() => null);
        if (record) return { topic, partition, record };
      }
    }
    return undefined;
  }

  async #withProducer(work: (producer: ReturnType<Kafka['producer']>) => Promise<void>): Promise<void> {
    const producer = this.#kafka.producer({ allowAutoTopicCreation: false, idempotent: false, retry: { retries: 2 } });
    await producer.connect();
    try {
      await work(producer);
    } finally {
      await producer.disconnect();
    }
  }
}

function clientOf(config: KafkaConfig): Kafka {
  return createKafka(config, 'sluice-doctor', SILENT);
}

/** Returns Kafka's name of an error, also of one that kafkajs has wrapped. */
function typeOf(error: unknown): string {
  const { type, cause, errors = [] } = error as { type?: string; cause?: unknown; errors?: readonly unknown[] };
  if (type !== undefined) return type;
  const inner = cause ?? errors[0];
  return inner === undefined ? reasonOf(error) : typeOf(inner);
}

/** Returns the broker that an error of kafkajs is about, also of one that it has wrapped. */
function brokerOf(error: unknown): string | undefined {
  const { broker, cause } = error as { broker?: string; cause?: unknown };
  return broker ?? (cause === undefined ? undefined : brokerOf(cause));
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

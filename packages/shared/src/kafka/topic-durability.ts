import kafkajs, { type Admin, type Kafka } from 'kafkajs';
import type { Logger } from '../base/log.ts';
import { atMost, sleep } from '../base/retry.ts';
import type { Component } from '../service/lifecycle.ts';
import { IN_SYNC_MIN, REPLICAS_MIN, withAdmin } from './topics.ts';

/** How often topics are looked at, in milliseconds: operators rarely change them. */
const CHECK_INTERVAL_MS = 60_000;

/** How soon they are looked at again while they cannot be read, in milliseconds: at a start they are being created. */
const RETRY_MS = 2_000;

/** How long a stop waits for Kafka, in milliseconds. */
const STOP_MS_MAX = 2_000;

/** What a `202` of rows in a topic rests on. */
export interface TopicReplicas {
  readonly topic: string;
  /** The replicas of the partition that has the fewest. */
  readonly replicas: number;
  /** `min.insync.replicas`; `undefined` without the right `DescribeConfigs`. */
  readonly inSyncMin: number | undefined;
}

export interface KafkaReplicas {
  /** How many brokers run. */
  readonly brokers: number;
  readonly topics: readonly TopicReplicas[];
}

/**
 * Looks each minute at how many brokers a `202` rests on, and warns, once, of topics with which it may rest on one, or of
 * which the loss of one broker stops ingest. One broker alone, with one replica, is meant to be so.
 */
export class TopicDurability implements Component {
  readonly name = 'durability of the topics';
  readonly #kafka: Kafka;
  readonly #topics: readonly string[];
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #found: KafkaReplicas | undefined;
  #warnings: readonly string[] = [];

  constructor(kafka: Kafka, topics: readonly string[], logger: Logger) {
    this.#kafka = kafka;
    this.#topics = topics;
    this.#logger = logger;
  }

  /** As of the last look, at most a minute ago; `undefined` when Kafka could not be read. */
  get found(): KafkaReplicas | undefined {
    return this.#found;
  }

  /** What the topics promise less than they should, and what to do, a sentence for each; as of the last time that they could be read. */
  get warnings(): readonly string[] {
    return this.#warnings;
  }

  async start(): Promise<void> {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await atMost(STOP_MS_MAX, this.#running ?? Promise.resolve());
  }

  /** Looks at the topics now. Never throws: whoever needs them says that Kafka cannot be reached. */
  async check(): Promise<void> {
    this.#found = await withAdmin(this.#kafka, (admin) => readReplicas(admin, this.#topics)).catch(() => undefined);
    if (this.#found === undefined) return;
    const before = new Set(this.#warnings);
    this.#warnings = shortcomings(this.#found);
    for (const warning of this.#warnings) if (!before.has(warning)) this.#logger.warn(warning);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.check();
      await sleep(this.#found ? CHECK_INTERVAL_MS : RETRY_MS, signal);
    }
  }
}

/** @throws kafkajs's errors, and while a topic, or the leader of a partition, is missing */
export async function readReplicas(admin: Admin, topics: readonly string[]): Promise<KafkaReplicas> {
  const { brokers } = await admin.describeCluster();
  const metadata = await admin.fetchTopicMetadata({ topics: [...topics] });
  const found: TopicReplicas[] = [];
  for (const topic of topics) {
    const partitions = metadata.topics.find(({ name }) => name === topic)?.partitions ?? [];
    // kafkajs may return nothing for a topic while one of its partitions has no leader.
    if (partitions.length === 0) throw new Error(`the partitions of ${topic} are not known`);
    const replicas = Math.min(...partitions.map((partition) => partition.replicas.length));
    found.push({ topic, replicas, inSyncMin: await readInSyncMin(admin, topic) });
  }
  return { brokers: brokers.length, topics: found };
}

async function readInSyncMin(admin: Admin, topic: string): Promise<number | undefined> {
  const configNames = ['min.insync.replicas'];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic, configNames }];
  try {
    const response = await admin.describeConfigs({ resources, includeSynonyms: false });
    const value = response.resources[0]?.configEntries[0]?.configValue;
    return value === undefined ? undefined : Number(value);
  } catch (error) {
    if ((error as { readonly type?: unknown }).type === 'TOPIC_AUTHORIZATION_FAILED') return undefined;
    throw error;
  }
}

/**
 * Returns what topics promise less than they should, and what to do: a sentence for each.
 *
 * @param verb `would have` for topics that are not created yet
 */
export function shortcomings({ brokers, topics }: KafkaReplicas, verb: 'has' | 'would have' = 'has'): string[] {
  return topics.flatMap(({ topic, replicas, inSyncMin }) => {
    if (brokers === 1 && replicas === 1) return [];
    const has = `topic ${topic} ${verb} ${replicas} replica${replicas === 1 ? '' : 's'} of each partition`;
    const todo = 'docs/operate/durability.md#kafka says how';
    if (replicas < REPLICAS_MIN) {
      const both = `${REPLICAS_MIN} replicas and min.insync.replicas=${IN_SYNC_MIN}`;
      const loss = replicas === 1 || (inSyncMin ?? 1) < IN_SYNC_MIN;
      const what = loss ? 'a 202 may rest on one broker' : 'without one of its brokers nothing is accepted';
      return [`${has}: ${what}; give it ${both} (${todo})`];
    }
    if (inSyncMin === undefined)
      return [`${has}, and its min.insync.replicas cannot be read: it should be ${IN_SYNC_MIN}; allow DescribeConfigs`];
    if (inSyncMin >= IN_SYNC_MIN) return [];
    return [
      `${has} and min.insync.replicas=${inSyncMin}: a 202 may rest on one broker; set it to ${IN_SYNC_MIN} (${todo})`,
    ];
  });
}

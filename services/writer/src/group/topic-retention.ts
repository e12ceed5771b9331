import kafkajs, { type Admin } from 'kafkajs';

/** How long an answer is used, in milliseconds: operators rarely change the retention. */
const FRESH_MS = 60_000;

/** Reads how long Kafka keeps the messages of topics. */
export class TopicRetention {
  readonly #topics: readonly string[];
  #retentionMs: ReadonlyMap<string, number> = new Map();
  /** On the clock of `performance`, which nobody sets. */
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(topics: readonly string[]) {
    this.#topics = topics;
  }

  /**
   * Returns `retention.ms` of each topic, at most a minute old. Topics from which age deletes nothing are left out, and
   * so are those whose configuration cannot be read: that takes the right `DescribeConfigs`. Never throws.
   */
  async read(admin: Admin): Promise<ReadonlyMap<string, number>> {
    if (performance.now() - this.#readAt > FRESH_MS) {
      this.#retentionMs = await this.#ask(admin);
      this.#readAt = performance.now();
    }
    return this.#retentionMs;
  }

  async #ask(admin: Admin): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const topic of this.#topics) {
      const resource = {
        type: kafkajs.ConfigResourceTypes.TOPIC,
        name: topic,
        configNames: ['retention.ms', 'cleanup.policy'],
      };
      const request = { resources: [resource], includeSynonyms: false };
      const response = await admin.describeConfigs(request).catch(() => undefined);
      const retentionMs = retentionMsOf(response?.resources[0]?.configEntries ?? []);
      if (retentionMs !== undefined) found.set(topic, retentionMs);
    }
    return found;
  }
}

function retentionMsOf(entries: readonly { configName: string; configValue: string }[]): number | undefined {
  const configured = (name: string) => entries.find(({ configName }) => configName === name)?.configValue;
  const retentionMs = Number(configured('retention.ms') ?? -1);
  const deletes = configured('cleanup.policy')?.split(',').includes('delete');
  // -1 keeps messages for ever.
  return deletes && retentionMs >= 0 ? retentionMs : undefined;
}

import type { KafkaMessage } from 'kafkajs';

/** Messages of one fetch arrive partition by partition; they are waited for this long, in milliseconds. */
const GATHER_MS = 5;

export interface Gatherer {
  /** Resolves when the messages are stored; rejects when their batch is given up. */
  add(messages: readonly KafkaMessage[]): Promise<void>;
}

interface OpenBatch {
  readonly messages: KafkaMessage[];
  bytes: number;
  readonly stored: PromiseWithResolvers<void>;
}

/**
 * Gathers the messages of all partitions into batches and has them stored one after the other: while one is being
 * stored, the next fills up to `bytesMax`.
 */
export function createGatherer(
  store: (messages: readonly KafkaMessage[]) => Promise<void>,
  bytesMax: number,
): Gatherer {
  const queue: OpenBatch[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (queue.length > 0) {
      if (queue.length === 1) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      const batch = queue.shift();
      if (!batch) break;
      await store(batch.messages).then(batch.stored.resolve, batch.stored.reject);
    }
    running = false;
  }

  return {
    add(messages) {
      const bytes = messages.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
      let batch = queue.at(-1);
      if (!batch || (batch.bytes > 0 && batch.bytes + bytes > bytesMax)) {
        batch = { messages: [], bytes: 0, stored: Promise.withResolvers() };
        queue.push(batch);
      }
      batch.messages.push(...messages);
      batch.bytes += bytes;
      if (!running) void run();
      return batch.stored.promise;
    },
  };
}

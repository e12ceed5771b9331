import type { SourceMessage } from '../protocol/row-batch.ts';
import { bytesOf } from './batch-size.ts';

/**
 * How long a batch waits for more messages before it is stored, in milliseconds: kafkajs delivers the messages of one
 * fetch partition by partition.
 */
const GATHER_MS = 5;

export interface Gatherer<Owner> {
  /** Resolves when the messages are stored. @throws when their batch is given up */
  add(messages: readonly SourceMessage[], owner: Owner): Promise<void>;
}

interface OpenBatch<Owner> {
  readonly owner: Owner;
  readonly messages: SourceMessage[];
  bytes: number;
  readonly stored: PromiseWithResolvers<void>;
}

/**
 * Gathers the messages of all partitions into batches and stores one batch after the other. While one is being stored,
 * the next one fills up to `bytesMax`. A batch holds messages of one owner only.
 */
export function createGatherer<Owner>(
  store: (messages: readonly SourceMessage[], owner: Owner) => Promise<void>,
  bytesMax: number,
): Gatherer<Owner> {
  const queue: OpenBatch<Owner>[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (queue.length > 0) {
      if (queue.length === 1) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      const batch = queue.shift();
      if (!batch) break;
      await store(batch.messages, batch.owner).then(batch.stored.resolve, batch.stored.reject);
    }
    running = false;
  }

  return {
    add(messages, owner) {
      const bytes = bytesOf(messages);
      let batch = queue.at(-1);
      if (!batch || batch.owner !== owner || (batch.bytes > 0 && batch.bytes + bytes > bytesMax)) {
        batch = { owner, messages: [], bytes: 0, stored: Promise.withResolvers() };
        queue.push(batch);
      }
      batch.messages.push(...messages);
      batch.bytes += bytes;
      if (!running) void run();
      return batch.stored.promise;
    },
  };
}

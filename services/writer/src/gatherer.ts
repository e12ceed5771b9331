import { sizeOf } from './batch-size.ts';
import type { SourceMessage } from './row-batch.ts';

/** Messages of one fetch arrive partition by partition; they are waited for this long, in milliseconds. */
const GATHER_MS = 5;

export interface Gatherer<Owner> {
  /** Resolves when the messages are stored; rejects when their batch is given up. */
  add(messages: readonly SourceMessage[], owner: Owner): Promise<void>;
}

interface OpenBatch<Owner> {
  readonly owner: Owner;
  readonly messages: SourceMessage[];
  bytes: number;
  readonly stored: PromiseWithResolvers<void>;
}

/**
 * Gathers the messages of all partitions into batches, each of one owner, and has them stored one after the other:
 * while one is being stored, the next fills up to `bytesMax`.
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
      const bytes = messages.reduce((sum, message) => sum + sizeOf(message), 0);
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

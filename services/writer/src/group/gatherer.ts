import type { SourceMessage } from '../protocol/row-batch.ts';
import { bytesOf } from './batch-size.ts';

/**
 * How long a batch waits for more messages before it is stored, in milliseconds: kafkajs delivers the messages of one
 * fetch partition by partition.
 */
const GATHER_MS = 5;

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
export class Gatherer<Owner> {
  readonly #store: (messages: readonly SourceMessage[], owner: Owner) => Promise<void>;
  readonly #bytesMax: number;
  readonly #queue: OpenBatch<Owner>[] = [];
  #running = false;

  constructor(store: (messages: readonly SourceMessage[], owner: Owner) => Promise<void>, bytesMax: number) {
    this.#store = store;
    this.#bytesMax = bytesMax;
  }

  /** Resolves when the messages are stored. @throws when their batch is given up */
  add(messages: readonly SourceMessage[], owner: Owner): Promise<void> {
    const bytes = bytesOf(messages);
    let batch = this.#queue.at(-1);
    if (!batch || batch.owner !== owner || (batch.bytes > 0 && batch.bytes + bytes > this.#bytesMax)) {
      batch = { owner, messages: [], bytes: 0, stored: Promise.withResolvers() };
      this.#queue.push(batch);
    }
    batch.messages.push(...messages);
    batch.bytes += bytes;
    if (!this.#running) void this.#run();
    return batch.stored.promise;
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0) {
      if (this.#queue.length === 1) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      const batch = this.#queue.shift();
      if (!batch) break;
      await this.#store(batch.messages, batch.owner).then(batch.stored.resolve, batch.stored.reject);
    }
    this.#running = false;
  }
}

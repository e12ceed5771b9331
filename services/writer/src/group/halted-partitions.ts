import type { Halts } from '@sluice/storage/clickhouse/halts';
import { type Epoch, Fenced, type OwnEpoch } from '@sluice/storage/protocol/epoch';
import type { Halt } from '@sluice/storage/protocol/log-gap';
import { nameOf, type TopicPartition } from '@sluice/storage/protocol/position';
import type { WriterMetrics } from '../metrics.ts';

/** The halted partitions of the current assignment, in memory, in the metrics and in ClickHouse. */
export class HaltedPartitions {
  readonly #halts: Halts;
  readonly #metrics: WriterMetrics;
  readonly #halted = new Map<string, Halt>();
  /** Halts that are not in ClickHouse yet. They outlive the assignment, so that none is forgotten. */
  readonly #unrecorded = new Map<string, { readonly halt: Halt; readonly epoch: OwnEpoch }>();
  /** The epoch of the last halt that was refused because the epoch is over. */
  #overEpoch: Epoch | undefined;

  constructor(halts: Halts, metrics: WriterMetrics) {
    this.#halts = halts;
    this.#metrics = metrics;
  }

  /** Forgets the partitions of the last assignment. */
  reset(): void {
    this.#halted.clear();
    this.#metrics.haltedPartitions.reset();
  }

  /** Adds a halt that is in ClickHouse already. */
  add(halt: Halt): void {
    const { topic, partition } = halt;
    this.#halted.set(nameOf(halt), halt);
    this.#metrics.haltedPartitions.set({ topic, partition }, 1);
  }

  /** Adds a halt that this writer has decided on in an epoch; {@link record} writes it to ClickHouse. */
  addNew(halt: Halt, epoch: OwnEpoch): void {
    this.add(halt);
    this.#unrecorded.set(nameOf(halt), { halt, epoch });
  }

  /** Removes a partition that goes on, and returns whether it was halted. */
  remove({ topic, partition }: TopicPartition): boolean {
    this.#metrics.haltedPartitions.remove({ topic, partition });
    return this.#halted.delete(nameOf({ topic, partition }));
  }

  has(partition: TopicPartition): boolean {
    return this.#halted.has(nameOf(partition));
  }

  /**
   * Writes the halts that are missing in ClickHouse, except those of an epoch that is over: what this writer has seen of
   * the partition may have been of two moments, before and after its new owner began.
   *
   * @throws ClickHouse's errors; then the next call writes them
   */
  async record(): Promise<void> {
    for (const [name, unrecorded] of this.#unrecorded) {
      const { halt, epoch } = unrecorded;
      await this.#halts.record(halt, epoch).catch((error) => {
        if (!(error instanceof Fenced)) throw error;
        this.#overEpoch = epoch;
      });
      if (this.#unrecorded.get(name) === unrecorded) this.#unrecorded.delete(name);
    }
  }

  /** Returns whether the last halt that was refused was refused because this epoch is over. */
  isOver(epoch: Epoch): boolean {
    return epoch === this.#overEpoch;
  }

  /** Returns the halts as they are now, to compare with later by {@link isLifted}. */
  snapshot(): ReadonlyMap<string, Halt> {
    return new Map(this.#halted);
  }

  /**
   * Returns whether an operator has resumed a partition, when ClickHouse has no active halt of it: it was halted in the
   * snapshot, nothing has halted it again since then, and its halt was recorded.
   */
  isLifted(partition: TopicPartition, before: ReadonlyMap<string, Halt>): boolean {
    const name = nameOf(partition);
    return before.has(name) && before.get(name) === this.#halted.get(name) && !this.#unrecorded.has(name);
  }

  /** Returns the halts as short phrases that say what to do. */
  phrases(): string[] {
    return [...this.#halted.values()].map(
      (halt) => `${nameOf(halt)} is halted (${halt.reason}): npm run writer -- status`,
    );
  }
}

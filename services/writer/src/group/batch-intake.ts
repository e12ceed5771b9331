import type { Logger } from '@sluice/shared/base/log';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { PARTITIONS_HEADER } from '@sluice/shared/rows';
import { isSameLog } from '@sluice/storage/kafka/inspect-partitions';
import type { Assignment } from '@sluice/storage/protocol/assignment';
import { type LogGap, logReplaced, messagesGone } from '@sluice/storage/protocol/log-gap';
import { nameOf } from '@sluice/storage/protocol/position';
import type { Batch, Consumer, Kafka } from 'kafkajs';
import type { WriterMetrics } from '../metrics.ts';
import type { BatchLoop } from './batch-loop.ts';
import type { BrokerLacks } from './broker-lacks.ts';
import type { PartitionKeeper } from './partition-keeper.ts';

export interface BatchIntakeOptions {
  readonly kafka: Kafka;
  readonly keeper: PartitionKeeper;
  readonly batches: BatchLoop;
  readonly lacks: Pick<BrokerLacks, 'look'>;
  /** KAFKA_PARTITIONS. */
  readonly partitionCount: number;
  readonly metrics: Pick<WriterMetrics, 'misplacedMessages'>;
  readonly logger: Logger;
}

/** Lets a fetched batch into ClickHouse only if it is the next one of its partition, in the log that was stored so far. */
export class BatchIntake {
  readonly #options: BatchIntakeOptions;
  /** Other numbers of partitions that messages have named. */
  readonly #otherCounts = new Set<string>();

  constructor(options: BatchIntakeOptions) {
    this.#options = options;
  }

  /**
   * Stores a fetched batch, or ignores it, fetches it again from the right offset, or halts its partition. Resolves with
   * whether it is stored, and its offsets may be committed.
   *
   * @throws {Fenced} when the assignment is over
   * @throws kafkajs's errors
   */
  async store(batch: Batch, assignment: Assignment, consumer: Consumer): Promise<boolean> {
    const { topic, partition, messages } = batch;
    this.#options.lacks.look(batch);
    let delivery = assignment.classify(batch);
    if (delivery.kind === 'new leader') {
      const { position } = delivery;
      const isSame = await withAdmin(this.#options.kafka, (admin) => isSameLog(admin, batch, position));
      // The partition may have gone to another writer meanwhile.
      delivery = assignment.classify(batch);
      if (!isSame && delivery.kind === 'new leader') {
        return this.#halt(batch, assignment, consumer, logReplaced(nameOf(batch), position.nextOffset));
      }
    }
    if (assignment.signal.aborted || delivery.kind === 'late') return false;
    if (delivery.kind === 'elsewhere') {
      consumer.seek({ topic, partition, offset: String(delivery.position.nextOffset) });
      return false;
    }
    if (delivery.kind === 'gap') {
      const { position, first } = delivery;
      return this.#halt(batch, assignment, consumer, messagesGone(nameOf(batch), position.nextOffset, first));
    }
    this.#noteMisplaced(batch);
    assignment.advance(batch);
    const sources = messages.map((message) => ({ topic, partition, message }));
    await this.#options.batches.add(sources, assignment);
    return true;
  }

  /**
   * Counts the messages whose rows were spread over another number of partitions, and logs each other number once. The
   * rows are stored all the same; but a repeat of one may be stored at the same time, by the owner of another partition.
   */
  #noteMisplaced({ topic, partition, messages }: Batch): void {
    const { partitionCount, metrics, logger } = this.#options;
    for (const { headers } of messages) {
      const header = headers?.[PARTITIONS_HEADER];
      if (header === undefined || String(header) === String(partitionCount)) continue;
      metrics.misplacedMessages.inc();
      const used = String(header);
      if (this.#otherCounts.has(used)) continue;
      this.#otherCounts.add(used);
      logger.error(
        { topic, partition, used, expected: partitionCount },
        'an ingest-api spreads rows over another number of partitions; set the same KAFKA_PARTITIONS for all services',
      );
    }
  }

  #halt({ topic, partition }: Batch, assignment: Assignment, consumer: Consumer, gap: LogGap): false {
    this.#options.keeper.halt(assignment, consumer, { topic, partition }, gap);
    return false;
  }
}

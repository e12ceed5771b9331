import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Kafka } from 'kafkajs';
import { Halts } from '../../clickhouse/halts.ts';
import { type ActiveHalt, readPartitions } from '../../clickhouse/known-partitions.ts';
import { offsetOf } from '../../kafka/inspect-partitions.ts';
import { nameOf } from '../../protocol/position.ts';

/** What `npm run writer -- status` shows of a partition. */
export interface PartitionStatus {
  readonly topic: string;
  readonly partition: number;
  /** The oldest offset of the log, and the offset after its newest message. */
  readonly low: bigint;
  readonly high: bigint;
  /** The offset that comes next, according to ClickHouse and to Kafka; undefined when nothing was stored or committed. */
  readonly stored: bigint | undefined;
  readonly committed: bigint | undefined;
  readonly halt: ActiveHalt | undefined;
}

/** The partitions of a group of writers, for the operator. It works with and without running writers. */
export interface Partitions {
  /** Returns all partitions except those without a leader. @throws kafkajs's and ClickHouse's errors */
  list(): Promise<PartitionStatus[]>;
  /** @throws ClickHouse's errors */
  halt(topic: string, partition: number): Promise<void>;
  /** Resumes a partition at an offset, or without one where it was, if its log is sound. @throws ClickHouse's errors */
  resume(topic: string, partition: number, offset?: bigint): Promise<void>;
}

export function createPartitions(
  kafka: Kafka,
  client: ClickHouseClient,
  groupId: string,
  topics: readonly string[],
): Partitions {
  const halts = new Halts(client, groupId);

  return {
    async list() {
      const known = await readPartitions(client, groupId);
      return await withAdmin(kafka, async (admin) => {
        const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
        const found: PartitionStatus[] = [];
        for (const topic of topics) {
          const logs = await admin.fetchTopicOffsets(topic);
          const ofGroup = committed.find((group) => group.topic === topic)?.partitions ?? [];
          for (const { partition, low, high } of logs.toSorted((one, other) => one.partition - other.partition)) {
            const name = nameOf({ topic, partition });
            const offset = offsetOf(ofGroup, partition);
            found.push({
              topic,
              partition,
              low: BigInt(low),
              high: BigInt(high),
              stored: known.positions.get(name)?.nextOffset,
              committed: offset < 0n ? undefined : offset,
              halt: known.halts.get(name),
            });
          }
        }
        return found;
      });
    },
    async halt(topic, partition) {
      const detail = `an operator has halted ${nameOf({ topic, partition })}`;
      await halts.record({ topic, partition, reason: 'by hand', detail, firstOffset: null, lastOffset: null });
    },
    resume: halts.resume,
  };
}

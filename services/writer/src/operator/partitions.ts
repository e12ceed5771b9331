import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import type { Kafka } from 'kafkajs';
import { createHalts, type Halt } from '../halts.ts';
import { offsetOf } from '../offset-guard.ts';
import { nameOf } from '../place.ts';
import { readPositions } from '../positions.ts';

/** What an operator is told of a partition. */
export interface PartitionStatus {
  readonly topic: string;
  readonly partition: number;
  /** The oldest offset of the log, and the one behind its newest. */
  readonly low: bigint;
  readonly high: bigint;
  /** What is stored next, as ClickHouse and as Kafka have it; undefined when nothing is. */
  readonly stored: bigint | undefined;
  readonly committed: bigint | undefined;
  readonly halt: (Halt & { readonly haltedAt: string }) | undefined;
}

/** The partitions of a group of writers, for the operator; works while writers run, and without any. */
export interface Partitions {
  /** @throws kafkajs's and ClickHouse's errors */
  list(): Promise<PartitionStatus[]>;
  halt(topic: string, partition: number): Promise<void>;
  /** Resumes a partition at an offset; without one where it was, after another look at its log. */
  resume(topic: string, partition: number, offset?: bigint): Promise<void>;
}

export function createPartitions(
  kafka: Kafka,
  client: ClickHouseClient,
  groupId: string,
  topics: readonly string[],
): Partitions {
  const halts = createHalts(client, groupId);

  return {
    async list() {
      const [positions, active] = await Promise.all([readPositions(client, groupId), halts.active()]);
      return await withAdmin(kafka, async (admin) => {
        const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
        const found: PartitionStatus[] = [];
        for (const topic of topics) {
          const logs = await admin.fetchTopicOffsets(topic);
          const ofGroup = committed.find((group) => group.topic === topic)?.partitions ?? [];
          // Those without a leader are not among them.
          for (const { partition, low, high } of logs.toSorted((one, other) => one.partition - other.partition)) {
            const name = nameOf({ topic, partition });
            const offset = offsetOf(ofGroup, partition);
            found.push({
              topic,
              partition,
              low: BigInt(low),
              high: BigInt(high),
              stored: positions.get(name)?.nextOffset,
              committed: offset < 0n ? undefined : offset,
              halt: active.get(name),
            });
          }
        }
        return found;
      });
    },
    async halt(topic, partition) {
      const detail = `${nameOf({ topic, partition })} was halted by hand`;
      await halts.record({ topic, partition, reason: 'by hand', detail, firstOffset: null, lastOffset: null });
    },
    resume: halts.lift,
  };
}

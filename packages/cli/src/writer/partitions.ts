import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { refuseOtherGroups } from '@sluice/writer/clickhouse/claim-database';
import { Halts } from '@sluice/writer/clickhouse/halts';
import { type ActiveHalt, readPartitions } from '@sluice/writer/clickhouse/known-partitions';
import { offsetOf } from '@sluice/writer/group/inspect-partitions';
import { nameOf } from '@sluice/writer/protocol/position';
import type { Kafka } from 'kafkajs';
import { readIdentity, recordState } from '../servers/identity.ts';

/** What `sluice writer status` shows of a partition. */
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
export class Partitions {
  readonly #kafka: Kafka;
  readonly #client: ClickHouseClient;
  readonly #groupId: string;
  readonly #topics: readonly string[];
  readonly #halts: Halts;

  constructor(kafka: Kafka, client: ClickHouseClient, groupId: string, topics: readonly string[]) {
    this.#kafka = kafka;
    this.#client = client;
    this.#groupId = groupId;
    this.#topics = topics;
    this.#halts = new Halts(client, groupId);
  }

  /**
   * Returns all partitions except those without a leader.
   *
   * @throws {GroupMismatch} when another group stores into the database: halts of this group would have no effect
   * @throws kafkajs's and ClickHouse's errors
   */
  async list(): Promise<PartitionStatus[]> {
    await refuseOtherGroups(this.#client, this.#groupId);
    const known = await readPartitions(this.#client, this.#groupId);
    return await withAdmin(this.#kafka, async (admin) => {
      const committed = await admin.fetchOffsets({ groupId: this.#groupId, topics: [...this.#topics] });
      const found: PartitionStatus[] = [];
      for (const topic of this.#topics) {
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
  }

  /** @throws ClickHouse's errors */
  async halt(topic: string, partition: number): Promise<void> {
    const detail = `an operator has halted ${nameOf({ topic, partition })}`;
    await this.#halts.record({ topic, partition, reason: 'by hand', detail, firstOffset: null, lastOffset: null });
  }

  /**
   * Records that messages are missing, where there is a file of servers: another server may have them, and is then read
   * instead of this one.
   *
   * @returns the name of the server; `undefined` where nothing is recorded
   * @throws ClickHouse's errors
   */
  async recordIncomplete(detail: string): Promise<string | undefined> {
    const identity = await readIdentity(this.#client);
    if (!identity || identity.server === '' || identity.state === 'filling') return undefined;
    await recordState(this.#client, 'incomplete', detail);
    return identity.server;
  }

  /** Resumes a partition at an offset, or without one where it was, if its log is sound. @throws ClickHouse's errors */
  async resume(topic: string, partition: number, offset?: bigint): Promise<void> {
    await this.#halts.resume(topic, partition, offset);
  }
}

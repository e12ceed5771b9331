import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { refuseOtherGroups } from '@sluice/storage/clickhouse/claim-database';
import { Halts } from '@sluice/storage/clickhouse/halts';
import { readIdentity, recordState } from '@sluice/storage/clickhouse/identity';
import { type ActiveHalt, readPartitions } from '@sluice/storage/clickhouse/known-partitions';
import { offsetOf } from '@sluice/storage/kafka/inspect-partitions';
import { isNothingStored } from '@sluice/storage/protocol/log-gap';
import { nameOf } from '@sluice/storage/protocol/position';
import type { Kafka } from 'kafkajs';

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

  /**
   * Resumes a partition at an offset, or without one where it was, if its log is sound. What the log has and is left out is
   * recorded, so that an audit knows where it is.
   *
   * @throws ClickHouse's errors
   */
  async resume(status: PartitionStatus, offset?: bigint): Promise<void> {
    const { topic, partition } = status;
    const first = firstLeftOut(status);
    if (offset !== undefined && offset > first) await this.#halts.giveUp(topic, partition, first, offset - 1n);
    await this.#halts.resume(topic, partition, offset);
  }
}

/** Returns which messages are lost by resuming at an offset, in one sentence or two. */
export function whatIsGivenUp(status: PartitionStatus, offset: bigint): string {
  const lost = messagesGivenUp(status, offset);
  if (lost !== undefined) return lost;
  const { low, high, stored, committed, halt } = status;
  const again = isNothingStored(halt) ? high : lowerOf(stored ?? committed ?? low, high);
  if (offset >= again) return 'Nothing is given up.';
  return `Nothing is given up: offsets ${offset} to ${again - 1n} are read again, and each row is stored once.`;
}

/** Returns which messages are lost by resuming at an offset, in a sentence or two; `undefined` when none is. */
export function messagesGivenUp(status: PartitionStatus, offset: bigint): string | undefined {
  const costs = isNothingStored(status.halt) ? neverRead(status, offset) : skipped(status, offset);
  return costs.length > 0 ? costs.join(' ') : undefined;
}

/** The first message of the log that is not stored, as far as that is known. */
function firstLeftOut({ low, stored, committed, halt }: PartitionStatus): bigint {
  const next = stored ?? committed ?? low;
  return isNothingStored(halt) || isOfAnotherLog(halt) || next < low ? low : next;
}

function isOfAnotherLog(halt: ActiveHalt | undefined): boolean {
  return halt?.reason === 'the log was cut off' || halt?.reason === 'the log is another one';
}

function skipped(status: PartitionStatus, offset: bigint): string[] {
  const { topic, partition, low, stored, committed, halt } = status;
  const name = nameOf({ topic, partition });
  const next = stored ?? committed ?? low;
  const isAnotherLog = isOfAnotherLog(halt);
  const costs: string[] = [];
  if (next < low) {
    costs.push(
      `Offsets ${next} to ${low - 1n} of ${name} were deleted by Kafka before they were stored: ${low - next} messages.`,
    );
  }
  const firstSkipped = firstLeftOut(status);
  if (offset > firstSkipped) {
    const doubt = isAnotherLog ? ', some of which may be new and not stored yet' : '';
    costs.push(
      `Offsets ${firstSkipped} to ${offset - 1n} of ${name} are in the log and are left out: ${offset - firstSkipped} messages${doubt}.`,
    );
  }
  if (isAnotherLog) costs.push('Messages that were cut off the log before they were stored are lost already.');
  return costs;
}

/** What is not read when a partition of which ClickHouse has no position resumes at an offset. */
function neverRead({ topic, partition, low }: PartitionStatus, offset: bigint): string[] {
  const name = nameOf({ topic, partition });
  const left: string[] = [];
  if (low > 0n) left.push(`Offsets 0 to ${low - 1n} of ${name} are no longer in Kafka: ${low} messages.`);
  if (offset > low) {
    left.push(`Offsets ${low} to ${offset - 1n} of ${name} are in the log and are left out: ${offset - low} messages.`);
  }
  return left.length > 0 ? [...left, 'They are missing unless ClickHouse has their rows.'] : [];
}

function lowerOf(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

import type { Admin, PartitionOffset, SeekEntry } from 'kafkajs';
import {
  type LogBounds,
  type LogGap,
  logCutOff,
  logReplaced,
  messagesGone,
  nothingStored,
} from '../protocol/log-gap.ts';
import { fingerprintOf, nameOf, type Position, positionAfter, type TopicPartition } from '../protocol/position.ts';

/** What is known of a partition before it is stored from. */
export interface PartitionState {
  readonly name: string;
  readonly bounds: LogBounds;
  /** The offset that the group has committed; -1 when it has committed none. */
  readonly committed: bigint;
  /** How far the partition is stored, according to ClickHouse. */
  readonly position: Position | undefined;
}

/** Whether a partition's log continues what was stored, and if so from where. */
export type Inspection =
  | { readonly kind: 'sound'; readonly position: Position; readonly committed: bigint }
  | { readonly kind: 'gap'; readonly gap: LogGap };

/**
 * Compares the committed and the stored offset with the log, and returns where the partition goes on.
 *
 * It goes on at the lower of the two offsets, so that a ClickHouse that was restored from a backup gets everything since
 * then again. An offset that an operator chose wins over the committed one.
 *
 * A partition without a stored position is new if its log is whole and nothing is committed: a position is stored before
 * the first commit. Otherwise ClickHouse has lost what was stored, and a person has to decide.
 */
export function compareOffsets({ name, bounds, committed, position }: PartitionState): Inspection {
  const { low, high } = bounds;
  if (!position) {
    if (low > 0n || committed > 0n) return gapOf(nothingStored(name, bounds, committed));
    return { kind: 'sound', position: { nextOffset: low, last: undefined }, committed };
  }
  const { nextOffset: stored } = position;
  const isChosen = position.last === undefined;
  const other = isChosen || committed < 0n ? stored : committed;
  const [next, furthest] = stored < other ? [stored, other] : [other, stored];
  if (furthest > high) return gapOf(logCutOff(name, bounds, furthest));
  // Kafka may have deleted what is stored already.
  const needed = stored >= low && next < low ? low : next;
  if (needed < low) return gapOf(messagesGone(name, needed, low));
  const last = needed === stored ? position.last : undefined;
  return { kind: 'sound', position: { nextOffset: needed, last }, committed };
}

function gapOf(gap: LogGap): Inspection {
  return { kind: 'gap', gap };
}

/** Returns whether the record before a position is still the one that was stored. @throws kafkajs's errors */
export async function isSameLog(
  admin: Admin,
  { topic, partition }: TopicPartition,
  position: Position,
): Promise<boolean> {
  if (!position.last) return true;
  const record = await admin.fetchRecord({ topic, partition, offset: String(position.nextOffset - 1n) });
  return record !== null && fingerprintOf(record) === position.last.fingerprint;
}

/**
 * Inspects partitions before they are stored from: compares their logs with the committed and the stored offsets, and
 * with the fingerprint of the last stored record. Partitions without a leader, or whose records Kafka does not return,
 * are left out of the result.
 *
 * @param groupId undefined: whatever any group has committed does not count
 * @throws kafkajs's errors
 */
export async function inspectPartitions(
  admin: Admin,
  groupId: string | undefined,
  partitions: Readonly<Record<string, readonly number[]>>,
  positions: ReadonlyMap<string, Position>,
): Promise<(TopicPartition & { readonly inspection: Inspection })[]> {
  const topics = Object.keys(partitions);
  const committed = groupId === undefined ? [] : await admin.fetchOffsets({ groupId, topics });
  const found: (TopicPartition & { inspection: Inspection })[] = [];
  for (const topic of topics) {
    const logs = await admin.fetchTopicOffsets(topic);
    const ofGroup: readonly PartitionOffset[] = committed.find((group) => group.topic === topic)?.partitions ?? [];
    for (const partition of partitions[topic] ?? []) {
      const bounds = boundsOf(logs, partition);
      if (!bounds) continue;
      const name = nameOf({ topic, partition });
      const state = { name, bounds, committed: offsetOf(ofGroup, partition), position: positions.get(name) };
      const inspection = await inspect(admin, { topic, partition }, state).catch(ifUnreadable);
      if (inspection) found.push({ topic, partition, inspection });
    }
  }
  return found;
}

async function inspect(admin: Admin, partition: TopicPartition, state: PartitionState): Promise<Inspection> {
  const { name, bounds, position } = state;
  const compared = compareOffsets(state);
  if (compared.kind === 'gap') return compared;
  // Retention may have deleted the record before the position; then there is nothing to compare.
  const isInLog = position !== undefined && position.nextOffset > bounds.low;
  if (isInLog && !(await isSameLog(admin, partition, position))) return gapOf(logReplaced(name, position.nextOffset));
  return { ...compared, position: await withLastRecord(admin, partition, compared.position, bounds) };
}

/**
 * Adds the record before a position that has none, which is the case when the partition goes on elsewhere than at its
 * stored position (a writer ended between storing and committing). With it, a log that is cut off later is noticed.
 */
async function withLastRecord(
  admin: Admin,
  { topic, partition }: TopicPartition,
  position: Position,
  { low }: LogBounds,
): Promise<Position> {
  if (position.last || position.nextOffset <= low) return position;
  const record = await admin.fetchRecord({ topic, partition, offset: String(position.nextOffset - 1n) });
  return record ? positionAfter(record) : position;
}

/** Returns the offset that the group has committed of a partition; -1 when it has committed none. */
export function offsetOf(offsets: readonly PartitionOffset[], partition: number): bigint {
  return BigInt(offsets.find((offset) => offset.partition === partition)?.offset ?? -1);
}

/** Returns the bounds of a partition's log; `undefined` while it has no leader. */
function boundsOf(
  logs: readonly (SeekEntry & { high: string; low: string })[],
  partition: number,
): LogBounds | undefined {
  const found = logs.find((log) => log.partition === partition);
  return found && { low: BigInt(found.low), high: BigInt(found.high) };
}

/** Returns `undefined` for Kafka's refusal to read one partition, which says nothing about the others. @throws other errors */
export function ifUnreadable(error: unknown): undefined {
  if ((error as Error).name !== 'KafkaJSProtocolError') throw error;
  return undefined;
}

import type { Admin, PartitionOffset, SeekEntry } from 'kafkajs';
import type { Assignment } from './assignment.ts';
import { fingerprintOf, nameOf, type Place, placeAfter } from './place.ts';
import type { Position } from './positions.ts';

/** The offsets that a partition's log holds: from `low`, up to but not including `high`. */
export interface LogBounds {
  readonly low: bigint;
  readonly high: bigint;
}

/** What is known of a partition before it is stored from. */
export interface PartitionState {
  readonly name: string;
  readonly bounds: LogBounds;
  /** What the group has committed; -1 when nothing was. */
  readonly committed: bigint;
  /** Up to where ClickHouse says that it is stored. */
  readonly position: Place | undefined;
}

/** Why a partition must not be stored from: a person has to look. */
export interface Fault {
  readonly reason: 'messages are gone' | 'the log was cut off' | 'the log is another one';
  readonly detail: string;
  /** The first and the last offset at fault, where that can be told. */
  readonly firstOffset: bigint | null;
  readonly lastOffset: bigint | null;
}

export type Verdict =
  | { readonly kind: 'sound'; readonly place: Place; readonly committed: bigint }
  | { readonly kind: 'fault'; readonly fault: Fault };

/**
 * Where a partition goes on: at the lower one of what is committed and what is stored, so that a ClickHouse that was
 * restored from a backup gets everything since again; at the oldest message when there is neither. What an operator
 * chose wins over what is committed.
 */
export function judgeOffsets({ name, bounds, committed, position }: PartitionState): Verdict {
  const { low, high } = bounds;
  const stored = position?.nextOffset;
  const isChosen = position !== undefined && position.last === undefined;
  const known = [stored, isChosen ? -1n : committed].filter(
    (offset) => offset !== undefined && offset >= 0n,
  ) as bigint[];
  const [next = low, furthest = next] = known.sort((one, other) => Number(one - other));
  if (furthest > high) return faulty(cutOff(name, bounds, furthest));
  // Everything before what is stored may be gone.
  const needed = stored !== undefined && stored >= low && next < low ? low : next;
  if (needed < low) return faulty(gone(name, needed, low));
  const last = needed === stored ? position?.last : undefined;
  return { kind: 'sound', place: { nextOffset: needed, last }, committed };
}

/** The log begins behind what is to be stored next. */
export function gone(name: string, next: bigint, low: bigint): Fault {
  const detail = `${low - next} messages of ${name} are gone before they were stored: ${next} is next, the log begins at ${low}`;
  return { reason: 'messages are gone', detail, firstOffset: next, lastOffset: low - 1n };
}

function cutOff(name: string, { low, high }: LogBounds, next: bigint): Fault {
  const detail = `the log of ${name} was cut off: it holds the offsets from ${low} up to ${high}, and ${next} is next`;
  return { reason: 'the log was cut off', detail, firstOffset: high, lastOffset: next - 1n };
}

/** What stands at the offset of the last stored record is another record. */
export function replaced(name: string, nextOffset: bigint): Fault {
  const detail = `the log of ${name} is not the one that was stored: another record stands at offset ${nextOffset - 1n}. It was cut off and has grown again, or the topic was made anew`;
  return { reason: 'the log is another one', detail, firstOffset: null, lastOffset: nextOffset - 1n };
}

function faulty(fault: Fault): Verdict {
  return { kind: 'fault', fault };
}

/** Whether the record before a place is still the one that was stored. @throws kafkajs's errors */
export async function isSameLog(admin: Admin, topic: string, partition: number, place: Place): Promise<boolean> {
  if (!place.last) return true;
  const record = await admin.fetchRecord({ topic, partition, offset: String(place.nextOffset - 1n) });
  return record !== null && fingerprintOf(record) === place.last.fingerprint;
}

/**
 * Looks at partitions before they are stored from: compares what is committed and stored with what their logs hold.
 * Those without a leader are left out.
 *
 * @throws kafkajs's errors
 */
export async function inspect(
  admin: Admin,
  groupId: string,
  partitions: Assignment['partitions'],
  positions: ReadonlyMap<string, Position>,
): Promise<{ readonly topic: string; readonly partition: number; readonly verdict: Verdict }[]> {
  const topics = Object.keys(partitions);
  const committed = await admin.fetchOffsets({ groupId, topics });
  const found: { topic: string; partition: number; verdict: Verdict }[] = [];
  for (const topic of topics) {
    const logs = await admin.fetchTopicOffsets(topic);
    const ofGroup: readonly PartitionOffset[] = committed.find((group) => group.topic === topic)?.partitions ?? [];
    for (const partition of partitions[topic] ?? []) {
      const name = nameOf({ topic, partition });
      const position = positions.get(name);
      const bounds = boundsOf(logs, partition);
      if (!bounds) continue;
      const verdict = judgeOffsets({ name, bounds, committed: offsetOf(ofGroup, partition), position });
      // Retention may have removed the record itself, once all before the position was stored.
      const standsInLog = position !== undefined && position.nextOffset > bounds.low;
      const isSame = verdict.kind === 'fault' || !standsInLog || (await isSameLog(admin, topic, partition, position));
      if (!isSame) found.push({ topic, partition, verdict: faulty(replaced(name, position.nextOffset)) });
      else if (verdict.kind === 'fault') found.push({ topic, partition, verdict });
      else {
        const place = await withLastRecord(admin, topic, partition, verdict.place, bounds);
        found.push({ topic, partition, verdict: { ...verdict, place } });
      }
    }
  }
  return found;
}

/**
 * A place other than the recorded position has no fingerprint, as when a writer ended between the two. The record before
 * it is read then, so that a log which is cut off from now on and grows again is noticed all the same.
 */
async function withLastRecord(
  admin: Admin,
  topic: string,
  partition: number,
  place: Place,
  { low }: LogBounds,
): Promise<Place> {
  if (place.last || place.nextOffset <= low) return place;
  const record = await admin.fetchRecord({ topic, partition, offset: String(place.nextOffset - 1n) });
  return record ? placeAfter(record) : place;
}

/** What the group has committed of a partition; -1 when nothing was. */
export function offsetOf(offsets: readonly PartitionOffset[], partition: number): bigint {
  return BigInt(offsets.find((offset) => offset.partition === partition)?.offset ?? -1);
}

/** The bounds of a partition, as `admin.fetchTopicOffsets` tells them; `undefined` while it has no leader. */
function boundsOf(
  logs: readonly (SeekEntry & { high: string; low: string })[],
  partition: number,
): LogBounds | undefined {
  const found = logs.find((log) => log.partition === partition);
  return found && { low: BigInt(found.low), high: BigInt(found.high) };
}

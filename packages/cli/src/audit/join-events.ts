import type { Books, Fate } from './books.ts';
import { Groups } from './groups.ts';
import { KEY_BYTES, readUuid } from './identifiers.ts';
import type { Kind } from './log-rows.ts';
import { Originals, repeats } from './originals.ts';
import type { Pending } from './pending.ts';
import {
  EVENT_BYTES,
  type EventRecord,
  type Place,
  readEvent,
  readStored,
  STAMPED,
  STORED_BYTES,
  UNREADABLE,
} from './records.ts';
import type { TopicRole } from './topic-logs.ts';

const DAY_MS = 86_400_000;

/** How many earlier rows are looked at again with one that may repeat them. */
const EARLIER_MAX = 8;

/** A uuid, and the number of its workspace. */
const SAME_BYTES = KEY_BYTES + 4;

/** A row of the log for which no reason is found yet: it is read again. */
export interface Candidate extends Place {
  readonly kind: Kind;
  readonly role: TopicRole;
  readonly workspace: string;
  readonly received: number;
  /** Earlier rows of the log that it repeats, and that do not show either. */
  readonly earlier: readonly Place[];
}

/** A stored event that the log does not have, as far as it was read. */
export interface Stray {
  readonly workspace: string;
  readonly uuid: string;
  readonly ms: number;
  readonly received: number;
}

/** What the join of events needs to know, and where it writes. */
export interface EventJoin {
  /** The window, in microseconds since 1970. */
  readonly since: number;
  readonly until: number;
  nameOf(workspace: number): string;
  /** From which time on the events of a workspace are kept, in milliseconds. */
  keptFromMs(workspace: number): number;
  /** The offset up to which a partition of a topic is stored. */
  storedUpTo(role: TopicRole, partition: number): number;
  readonly books: Books;
  readonly candidates: Pending<Candidate>;
  readonly strays: Pending<Stray>;
  /** The days of UTC that stored events of the window are of, since 1970. */
  readonly days: Set<number>;
}

/** Counts the events of a slice, in the log and stored ones. What is not clear becomes a candidate or a stray. */
export function joinEvents(log: Buffer, stored: Buffer, join: EventJoin): void {
  const groups = new Groups(log, EVENT_BYTES, SAME_BYTES);
  const storedGroups = new Groups(stored, STORED_BYTES, SAME_BYTES);
  const isStored = markStored(log, groups, stored, join);
  for (let index = 0; index * EVENT_BYTES < log.length; index += 1) {
    const at = index * EVENT_BYTES;
    if (groups.first(log, at) !== index) continue;
    // Nearly all stand alone, and are stored.
    if (isStored[index] === 1 && groups.next(index) < 0) countStored(readEvent(log, at), join);
    else countGroup(log, groups, index, isStored, storedRows(stored, storedGroups, storedGroups.first(log, at)), join);
  }
}

/** Returns which records of the log are stored; of several that are the same, the first. */
function markStored(log: Buffer, groups: Groups, stored: Buffer, join: EventJoin): Uint8Array {
  const isStored = new Uint8Array(log.length / EVENT_BYTES);
  for (let at = 0; at < stored.length; at += STORED_BYTES) {
    const { workspace, ms, received } = readStored(stored, at);
    const isInWindow = received >= join.since && received < join.until;
    if (isInWindow) join.days.add(Math.floor(ms / DAY_MS));
    let index = groups.first(stored, at);
    while (index >= 0) {
      const record = readEvent(log, index * EVENT_BYTES);
      if (record.ms === ms && record.received === received) break;
      index = groups.next(index);
    }
    if (index >= 0) isStored[index] = 1;
    else if (isInWindow)
      join.strays.add({ workspace: join.nameOf(workspace), uuid: readUuid(stored, at), ms, received });
  }
  return isStored;
}

function* storedRows(stored: Buffer, groups: Groups, head: number) {
  for (let index = head; index >= 0; index = groups.next(index)) yield readStored(stored, index * STORED_BYTES);
}

/** Counts an event that is stored, and that no other one has anything to do with. */
function countStored(record: EventRecord, join: EventJoin): void {
  if (record.received < join.since || record.received >= join.until) return;
  const fate = fateOf(record, true, NO_OTHERS, join) ?? 'stored';
  join.books.count(join.nameOf(record.workspace), record, 'events', fate);
}

/** Counts the events of one workspace and uuid, in the order of the log. */
function countGroup(
  log: Buffer,
  groups: Groups,
  head: number,
  isStored: Uint8Array,
  stored: Iterable<{ readonly ms: number; readonly received: number }>,
  join: EventJoin,
): void {
  // What others repeat: events that show, and such as do not any more.
  const others = { shown: new Originals(), deleted: new Originals(), expired: new Originals() };
  const hidden = new Map<string, number>();
  for (let index = head; index >= 0; index = groups.next(index)) {
    const { ms, received, deleted } = readEvent(log, index * EVENT_BYTES);
    if (isStored[index] === 1 && deleted >= received) hidden.set(`${ms}/${received}`, deleted);
  }
  for (const row of stored) {
    const deleted = hidden.get(`${row.ms}/${row.received}`);
    if (deleted === undefined) others.shown.add(row, Number.POSITIVE_INFINITY);
    else others.deleted.add(row, deleted);
  }
  const earlier: EventRecord[] = [];
  for (let index = head; index >= 0; index = groups.next(index)) {
    const record = readEvent(log, index * EVENT_BYTES);
    const fate = fateOf(record, isStored[index] === 1, others, join);
    const isStamped = (record.flags & STAMPED) !== 0;
    const isInWindow = record.received >= join.since && record.received < join.until;
    const workspace = join.nameOf(record.workspace);
    if (isInWindow && fate) join.books.count(workspace, record, 'events', fate);
    else if (isInWindow) {
      const repeated = earlier.filter((other) => repeats(record, isStamped, other)).slice(0, EARLIER_MAX);
      const { partition, offset, line, received } = record;
      join.candidates.add({
        ...{ kind: 'events', role: 'events', partition, offset, line, workspace, received },
        earlier: repeated.map((other) => ({ partition: other.partition, offset: other.offset, line: other.line })),
      });
    }
    if (fate === 'deleted') others.deleted.add(record, record.deleted);
    if (fate === 'expired') others.expired.add(record, Number.POSITIVE_INFINITY);
    if ((!fate || fate === 'deleted') && earlier.length < EARLIER_MAX && (record.flags & UNREADABLE) === 0)
      earlier.push(record);
  }
}

/** The events that another one of the same uuid may repeat: those that show, and those that no longer do. */
interface Others {
  readonly shown: Originals;
  readonly deleted: Originals;
  readonly expired: Originals;
}

const NO_OTHERS: Others = { shown: new Originals(), deleted: new Originals(), expired: new Originals() };

/** Returns what became of an event; `undefined` where that has to be looked at. */
function fateOf(record: EventRecord, isStored: boolean, others: Others, join: EventJoin): Fate | undefined {
  const isStamped = (record.flags & STAMPED) !== 0;
  const isReadable = (record.flags & UNREADABLE) === 0;
  if (record.deleted >= record.received) return 'deleted';
  if (isReadable && record.ms < join.keptFromMs(record.workspace)) return 'expired';
  if (isStored) return 'stored';
  if (isReadable && others.shown.hasOriginalOf(record, isStamped)) return 'repeats';
  if (record.offset >= join.storedUpTo('events', record.partition)) return 'waiting';
  if (isReadable && others.deleted.hasOriginalOf(record, isStamped)) return 'deleted';
  if (isReadable && others.expired.hasOriginalOf(record, isStamped)) return 'expired';
  return undefined;
}

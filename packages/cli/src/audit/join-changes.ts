import type { Books, Fate } from './books.ts';
import { Groups } from './groups.ts';
import { KEY_BYTES } from './identifiers.ts';
import type { Candidate } from './join-events.ts';
import type { Pending } from './pending.ts';
import {
  CHANGE_BYTES,
  type ChangeRecord,
  DELETED_USER,
  IN_EVENTS,
  NO_CHANGE,
  OF_USER,
  REGISTER_BYTES,
  REJECTED,
  readChange,
  readRegister,
  SEEN,
} from './records.ts';
import type { TopicRole } from './topic-logs.ts';

/** The length of a week, in microseconds. */
export const WEEK_MICROS = 604_800_000_000;

/** For how long rejected calls are kept, in microseconds. */
const REJECTED_KEPT_MICROS = 30 * 86_400_000_000;

/** What the join of changes needs to know, and where it writes. */
export interface ChangeJoin {
  /** The window, in microseconds since 1970. */
  readonly since: number;
  readonly until: number;
  readonly now: number;
  nameOf(workspace: number): string;
  storedUpTo(role: TopicRole, partition: number): number;
  readonly books: Books;
  readonly candidates: Pending<Candidate>;
}

/** Returns the ids of the rejected calls of a slice. */
export function rejectedCallsOf(log: Buffer): string[] {
  const ids = new Set<string>();
  for (let at = 0; at < log.length; at += CHANGE_BYTES) {
    if (readChange(log, at).week === REJECTED) ids.add(log.toString('hex', at, at + KEY_BYTES));
  }
  return [...ids];
}

/**
 * Counts the changes and the rejected calls of a slice.
 *
 * @param deadLetters the ids of its rejected calls that are dead letters
 */
export function joinChanges(log: Buffer, registers: Buffer, deadLetters: ReadonlySet<string>, join: ChangeJoin): void {
  const groups = new Groups(log, CHANGE_BYTES, KEY_BYTES);
  const stored = new Groups(registers, REGISTER_BYTES, KEY_BYTES);
  for (let index = 0; index * CHANGE_BYTES < log.length; index += 1) {
    const at = index * CHANGE_BYTES;
    if (groups.first(log, at) !== index) continue;
    const versions = new Map<number, number>();
    for (let row = stored.first(log, at); row >= 0; row = stored.next(row)) {
      const { week, version } = readRegister(registers, row * REGISTER_BYTES);
      versions.set(week, Math.max(version, versions.get(week) ?? 0));
    }
    const isDeadLetter = deadLetters.has(log.toString('hex', at, at + KEY_BYTES));
    const before = new Set<string>();
    for (let other = index; other >= 0; other = groups.next(other)) {
      countChange(readChange(log, other * CHANGE_BYTES), before, { versions, isDeadLetter }, join);
    }
  }
}

/** What is stored of the key of changes. */
interface Stored {
  readonly versions: ReadonlyMap<number, number>;
  readonly isDeadLetter: boolean;
}

function countChange(record: ChangeRecord, before: Set<string>, stored: Stored, join: ChangeJoin): void {
  const { received, week, flags, partition, offset, line } = record;
  if (received < join.since || received >= join.until) return;
  const role = (flags & IN_EVENTS) !== 0 ? 'events' : 'entities';
  const kind = week === REJECTED ? 'rejected' : 'changes';
  const workspace = join.nameOf(record.workspace);
  const isKnown = week !== REJECTED && week !== NO_CHANGE && before.has(`${week}/${received}`);
  before.add(`${week}/${received}`);
  // A deletion is sent to every partition, and is one row.
  if (isKnown && week === DELETED_USER) return;
  const fate = isKnown ? 'repeats' : fateOf(record, role, stored, join);
  if (fate) join.books.count(workspace, record, kind, fate);
  else join.candidates.add({ kind, role, partition, offset, line, workspace, received, earlier: [] });
}

function fateOf(
  record: ChangeRecord,
  role: TopicRole,
  { versions, isDeadLetter }: Stored,
  { now, storedUpTo }: ChangeJoin,
): Fate | undefined {
  const { received, week, deleted, flags, offset, partition } = record;
  if (week === DELETED_USER) {
    if (deleted >= received) return 'stored';
  } else {
    if ((flags & OF_USER) !== 0 && deleted >= received) return 'deleted';
    if (week === REJECTED && received < now - REJECTED_KEPT_MICROS) return 'expired';
    if (week === REJECTED && isDeadLetter) return 'dead_letters';
    const version = versions.get(week);
    if (version !== undefined && version >= versionIn(week, received)) return 'stored';
  }
  return offset >= storedUpTo(role, partition) ? 'waiting' : undefined;
}

/** Returns the version of a change in its register: see property-versions.ts in packages/shared. */
export function versionIn(week: number, received: number): number {
  if (week === 1) return 2_650_000_000_000_000 - received;
  return week > 1 && week < SEEN ? received % WEEK_MICROS : received;
}

import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { nameOf as partitionName } from '@sluice/storage/protocol/position';
import { AssignerProtocol } from 'kafkajs';
import type { SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import {
  createTables,
  currentChange,
  type DeadLetterRow,
  isHidden,
  personKey,
  rowsOfUser,
  type StagedEvent,
  type StoredEvent,
  type Tables,
  timesAfter,
  userKey,
  WEEK_US,
} from '../clickhouse/tables.ts';
import { deletableUsersOf, deletedWith, factKey } from '../clickhouse/visitor-owner.ts';
import type { LogRecord, PartitionLog } from '../kafka/partition-log.ts';
import type { Commit } from '../kafka/simulated-kafka.ts';
import { areNear, areSame, contentOf, identityOf, nameOf, repeats } from './event-identity.ts';
import { partitionOf } from './row-sender.ts';
import type { SentPoison, SentRow } from './sent-rows.ts';
import type { Server } from './server.ts';
import type { World } from './world.ts';

/** What a producer was told that it is accepted, compared with what a server has stored: at each moment, and in the end. */
export class Oracle {
  readonly #world: World;
  readonly #server: Server;
  readonly #found: () => SimulatedClickHouse;
  /** The timestamps of what was stored at some time, by the identity of the event. Erased events are among them. */
  #stored = new Map<string, Set<number>>();
  /** Up to which record of each log the commits are checked. */
  readonly #checked = new Map<PartitionLog, number>();
  /** Whether the server has lost what it had stored, and was restored from a backup if there was one. */
  hasRestored = false;

  /** @param clickhouse returns the one that is looked at: that of the server, or one of its replicas */
  constructor(world: World, server: Server, clickhouse: () => SimulatedClickHouse) {
    this.#world = world;
    this.#server = server;
    this.#found = clickhouse;
  }

  get #clickhouse(): SimulatedClickHouse {
    return this.#found();
  }

  /** Returns a function that restores the server as it is now. */
  backUp(): () => void {
    const tables = structuredClone(this.#clickhouse.tables);
    const stored = structuredClone(this.#stored);
    return () => this.#replace(tables, stored);
  }

  /** The server has lost all that it had stored. */
  wipe(): void {
    this.#replace(createTables(), new Map());
  }

  #replace(tables: Tables, stored: Map<string, Set<number>>): void {
    this.#clickhouse.tables = tables;
    this.#stored = stored;
    this.hasRestored = true;
    this.#checked.clear();
  }

  reportConflict(row: StagedEvent): void {
    this.report(`${nameOf(row)} is stored by two inserts at once`);
  }

  /** Checks events that become visible. */
  checkInsert(rows: readonly StoredEvent[]): void {
    const visible = this.#visibleEvents();
    for (const row of rows) {
      const identity = identityOf(row);
      this.#stored.set(identity, (this.#stored.get(identity) ?? new Set()).add(row.timestamp));
      // A part that a replica fetches late may be of a user who was deleted meanwhile.
      if (this.#isHidden(row)) {
        this.#checkPending(row);
        continue;
      }
      const others = visible.get(identity) ?? [];
      if (others.some((other) => areSame(row, other))) this.report(`${nameOf(row)} is stored twice`);
      visible.set(identity, [...others, row]);
      this.#checkColumns(row);
      if (!this.#server.sent.hasKeyOf(row)) this.report(`${nameOf(row)} was never sent`);
      if (!this.#server.stores({ partition: partitionOf(row.uuid, this.#world.config.KAFKA_PARTITIONS) }))
        this.report(`${nameOf(row)} is stored, and belongs to another range of partitions`);
    }
  }

  #checkColumns(row: StoredEvent): void {
    const wrong = this.#world.declarations.wrongColumns(row);
    if (wrong) this.report(`${nameOf(row)} ${wrong}`);
  }

  /** Returns the events that no deletion hides, by their identities. */
  #visibleEvents(): Map<string, readonly StoredEvent[]> {
    return Map.groupBy(
      this.#clickhouse.tables.events.filter((event) => !this.#isHidden(event)),
      identityOf,
    );
  }

  /** Checks that no event of a deleted user is there that no query knows to hide. */
  checkForgotten(): void {
    for (const row of this.#clickhouse.tables.events) if (this.#isHidden(row)) this.#checkPending(row);
  }

  /** Queries hide what a pending deletion hides that any of the replicas knows. */
  #checkPending(row: StoredEvent): void {
    const { forgetting } = this.#server;
    if (!forgetting || row.received_at > forgetting.forgotten.upTo(personKey(row))) return;
    const isPending = forgetting.tables.some(({ pendingDeletions }) =>
      pendingDeletions.some(
        ({ workspace, user, version }) => userKey(workspace, user) === personKey(row) && version >= row.received_at,
      ),
    );
    if (!isPending) this.report(`${nameOf(row)} is stored after its user was erased`);
  }

  /** A deletion hides an event at all replicas once one of them knows it. */
  #isHidden(event: StagedEvent): boolean {
    return event.received_at <= this.#deletedAt(personKey(event));
  }

  /** Returns the version of the last deletion of a user or visitor that any of the replicas knows; 0: there is none. */
  #deletedAt(person: string): number {
    const { replicas } = this.#server;
    if (!replicas) return this.#clickhouse.tables.deletions.get(person) ?? 0;
    return Math.max(...replicas.tables.map(({ deletions }) => deletions.get(person) ?? 0));
  }

  /** Checks that everything before an offset is stored, when it is committed, and that its owner commits it. */
  checkCommit(commit: Commit): void {
    const { log, offset } = commit;
    this.checkOwner(commit);
    // What a second server has stored is stored here later: the position here has not moved.
    if (!this.#server.sent.isCutOff(log) && !this.#server.balancer) this.#checkStored(log, offset);
  }

  checkOwner({ log, offset, assignment }: Commit): void {
    const { [log.topic]: own } = (assignment && AssignerProtocol.MemberAssignment.decode(assignment)?.assignment) ?? {};
    if (!own?.includes(log.partition))
      this.report(`offset ${offset} of ${partitionName(log)} is committed by a writer that does not own it`);
  }

  #checkStored(log: PartitionLog, offset: number): void {
    const from = this.#checked.get(log) ?? 0;
    for (const record of log.from(from)) {
      if (Number(record.offset) >= offset) break;
      for (const sent of this.#server.sent.rowsOf(record)) {
        const missing = this.missing(log, record, sent);
        if (missing) this.report(`offset ${offset} of ${partitionName(log)} is committed, but ${missing}`);
      }
    }
    this.#checked.set(log, Math.max(from, offset));
  }

  /** Returns whether everything is stored and committed, but for partitions that are halted. */
  isDone(): boolean {
    const { kafka, topics } = this.#world;
    const { positions, halts } = this.#clickhouse.tables;
    const { offsets } = this.#server.group;
    return kafka.logs.every((log) => {
      const name = partitionName(log);
      if (!Object.values(topics).includes(log.topic) || log.high === 0 || !this.#server.stores(log)) return true;
      if (halts.get(name)?.isResumed === false) return true;
      const last = log.records.at(-1);
      const end = last ? Number(last.offset) + 1 : log.high;
      return (offsets.get(name) ?? 0) >= end && (positions.get(name)?.nextOffset ?? 0) >= end;
    });
  }

  /** Checks everything in the end. @param isErased whether all deleted users are erased */
  checkEnd(isErased: boolean): void {
    const { kafka } = this.#world;
    for (const log of kafka.logs.filter((one) => this.#server.stores(one))) {
      this.#checked.delete(log);
      this.#checkStored(log, log.high);
    }
    this.#checkEvents();
    for (const row of this.#clickhouse.tables.events) this.#checkColumns(row);
    this.#checkDeletions();
    this.#checkEntities();
    if (!this.#server.sent.hasLost) {
      this.#checkProperties();
      this.#checkLinks();
    }
    if (isErased) this.#checkErased();
  }

  /** What says whose visitors are is stored, unless the deletion of its user hides it, and nothing else is. */
  #checkLinks(): void {
    const { tables } = this.#clickhouse;
    const facts = new Map(this.#server.sent.facts().map((fact) => [factKey(fact), fact]));
    for (const [key, fact] of facts) {
      const { workspace, visitor, user, version } = fact;
      const isDeleted = deletableUsersOf(fact).some(
        (one) => version <= (tables.deletions.get(userKey(workspace, one)) ?? 0),
      );
      if (!isDeleted && !tables.links.has(key)) this.report(`that ${visitor} is ${user || 'nobody'} is not stored`);
    }
    for (const [key, { visitor, user }] of tables.links) {
      if (!facts.has(key)) this.report(`that ${visitor} is ${user} is stored, and was never sent`);
    }
  }

  /** With each user, the visitors are deleted that were the user's then, who was merged into it, and no others. */
  #checkDeletedVisitors(): void {
    const { tables } = this.#clickhouse;
    const { sent } = this.#server;
    const [facts, deletions] = [sent.facts(), sent.deletionsOfUsers()];
    for (const deletion of deletions) {
      for (const visitor of deletedWith(deletion, facts, deletions)) {
        const deleted = tables.deletions.get(userKey(deletion.workspace, visitor)) ?? 0;
        if (deleted < deletion.version) this.report(`${visitor} was of ${deletion.user}, and is not deleted`);
      }
    }
    this.#checkSentDeletions();
  }

  /** Writers delete no visitor who was nobody's, or somebody else's. */
  #checkSentDeletions(): void {
    const { sent, servers, deletedByWriters } = this.#world;
    if (servers.some(({ oracle }) => oracle.hasRestored)) return;
    const [facts, deletions] = [sent.facts(), sent.deletionsOfUsers()];
    const right = new Set(
      deletions.flatMap((deletion) =>
        deletedWith(deletion, facts, deletions).map((visitor) => `${visitor} ${deletion.version}`),
      ),
    );
    for (const { id, version } of deletedByWriters) {
      if (!right.has(`${id} ${version}`))
        this.report(`${id} is deleted up to ${version}, and was of no user deleted then`);
    }
  }

  /** Nothing is left of deleted users but what came after their deletions. */
  #checkErased(): void {
    const { events, properties, sightings, links, entities, deletions } = this.#clickhouse.tables;
    const isLeft = (workspace: string, user: string, version: number) =>
      version <= (deletions.get(userKey(workspace, user)) ?? 0);
    for (const event of events) {
      const { workspace_id, user_id, received_at } = event;
      if (isLeft(workspace_id, user_id, received_at)) this.report(`${nameOf(event)} is not erased`);
    }
    for (const { workspace, kind, id, change } of properties.values()) {
      if (kind === 'user' && isLeft(workspace, id, change.version)) this.report(`a property of ${id} is not erased`);
    }
    for (const { workspace, user, version } of sightings) {
      if (isLeft(workspace, user, version)) this.report(`a sighting of ${user} is not erased`);
    }
    for (const fact of links.values()) {
      const { workspace, user, visitor, version } = fact;
      const isOfDeleted = deletableUsersOf(fact).some((one) => isLeft(workspace, one, version));
      if (isOfDeleted) this.report(`that ${visitor} is ${user} is not erased`);
    }
    for (const { workspace, kind, id, otherId } of entities.values()) {
      const begin = Number(otherId) + 1;
      if (kind === 'user' && isLeft(workspace, id, begin)) this.report(`that ${id} was seen is not erased`);
    }
    if (!this.#server.sent.hasLost && !this.hasRestored) {
      this.#checkReturned();
      this.#checkDeletedVisitors();
    }
  }

  /**
   * Users who came back after a deletion are stored with the times since then. Where the writer of their event was gone for
   * longer than the erasure waits, the time that stood in for it stays.
   */
  #checkReturned(): void {
    const { tables } = this.#clickhouse;
    for (const [user, deletedAt] of tables.deletions) {
      const rows = rowsOfUser(tables, user);
      const times = timesAfter(tables, user, deletedAt);
      const standIns = (tables.standIns.get(user) ?? []).filter((ms) => ms * 1_000 >= deletedAt);
      const stored = [...rows.map(({ firstSeenMs }) => firstSeenMs), ...rows.map(({ lastSeenMs }) => lastSeenMs)];
      const isRight = [times, [...times, ...standIns]].some(
        (seen) => Math.min(...stored) === Math.min(...seen) && Math.max(...stored) === Math.max(...seen),
      );
      if (!isRight) this.report(`${user} was seen ${times}, and is stored with ${stored}`);
    }
  }

  #checkEvents(): void {
    const { sent } = this.#server;
    const visible = this.#visibleEvents();
    for (const copies of visible.values()) {
      for (const [at, row] of copies.entries()) {
        if (copies.slice(0, at).some((other) => areSame(row, other))) this.report(`${nameOf(row)} is stored twice`);
      }
    }
    const deletions = sent.deletions();
    for (const event of sent.events()) {
      if (event.received_at <= (deletions.get(personKey(event)) ?? 0)) continue;
      const copies = visible.get(identityOf(event)) ?? [];
      const isThere = copies.some((row) => repeats(event, row));
      if (!isThere && !this.#isUncertain(event)) this.report(`${nameOf(event)} is lost`);
    }
    if (!sent.hasLost) this.#checkFates([...visible.values()].flat());
  }

  /** Checks that of events that repeat each other those are visible that come first in the log. */
  #checkFates(visible: readonly StoredEvent[]): void {
    const { staying, open } = this.#server.sent.fates();
    const found = new Set(visible.map(contentOf));
    const allowed = new Set([...staying, ...open].map(contentOf));
    for (const event of staying) {
      if (!found.has(contentOf(event)))
        this.report(`${nameOf(event)} is not visible, and repeats nothing that comes before it`);
    }
    for (const event of visible) {
      if (!allowed.has(contentOf(event))) this.report(`${nameOf(event)} is visible, and repeats what comes before it`);
    }
  }

  #checkDeletions(): void {
    const { tables } = this.#clickhouse;
    for (const [user, version] of this.#server.sent.deletions()) {
      if ((tables.deletions.get(user) ?? 0) < version) this.report(`a deletion of ${user} is lost`);
    }
  }

  #checkEntities(): void {
    const { tables } = this.#clickhouse;
    for (const event of tables.events.filter((row) => !isHidden(tables, row))) {
      const seenAt = rowsOfUser(tables, personKey(event)).map(({ version }) => version);
      if (event.user_id !== '' && Math.max(0, ...seenAt) < event.received_at) {
        this.report(`the user of ${nameOf(event)} was not seen`);
      }
      const organization = tables.entities.get([event.workspace_id, 'organization', event.group_id, ''].join('\0'));
      if (event.group_id !== '' && (organization?.version ?? 0) < event.received_at) {
        this.report(`the organization of ${nameOf(event)} was not seen`);
      }
    }
    // Where the original was lost, its repeat takes its place for a while.
    if (this.#server.sent.hasLost || this.hasRestored) return;
    for (const { kind, id } of tables.entities.values()) {
      if (kind === 'user' && this.#server.sent.isRepeatedOnlyFor(id))
        this.report(`${id} exists, and only a repeat names it`);
    }
  }

  #checkProperties(): void {
    const { tables } = this.#clickhouse;
    const { sent } = this.#server;
    const deletions = sent.deletions();
    const ofProperty = ({ workspace_id, kind, id, property }: ChangeRow) =>
      [workspace_id, kind, id, property].join('\0');
    const changes = sent.changes().filter(({ property }) => property !== undefined);
    for (const [of, all] of Map.groupBy(changes, ofProperty)) {
      const [workspace = '', kind = '', id = '', property = ''] = of.split('\0');
      const deletedAt = kind === 'user' ? (deletions.get(userKey(workspace, id)) ?? 0) : 0;
      const value = decidingChange(all, deletedAt)?.value;
      const stored = currentChange(tables, { workspace, kind, id, property })?.value;
      if (stored !== value) this.report(`${property} of ${id} is ${stored}, not ${value}`);
    }
  }

  /** Returns what of a record is missing in ClickHouse. */
  missing(log: PartitionLog, record: LogRecord, sent: SentRow): string | undefined {
    const { tables } = this.#clickhouse;
    if (sent.kind === 'poison') return this.#missingDeadLetter(log, record, sent);
    if (sent.kind === 'event') {
      const deleted = this.#deletedAt(personKey(sent.row));
      const isSettled = this.#wasStored(sent.row) || sent.row.received_at <= deleted || this.#isUncertain(sent.row);
      return isSettled ? undefined : `${nameOf(sent.row)} is not stored`;
    }
    const { operation, workspace_id, kind, id, property, version } = sent.row;
    const deleted = this.#deletedAt(userKey(workspace_id, id));
    if (operation === 'delete') {
      const isStored = (tables.deletions.get(userKey(workspace_id, id)) ?? 0) >= version;
      return isStored ? undefined : `the deletion of ${id} is not stored`;
    }
    if ((operation !== 'set' && operation !== 'set_once') || (kind === 'user' && version <= deleted)) return undefined;
    const isOnceOfOrganization = operation === 'set_once' && kind === 'organization';
    const onceWeek = operation === 'set' ? 0 : isOnceOfOrganization ? 1 : Math.floor(version / WEEK_US);
    const stored = tables.properties.get([workspace_id, kind, id, property, onceWeek].join('\0'));
    if (isOnceOfOrganization && stored) return undefined;
    return (stored?.change.version ?? 0) >= version ? undefined : `${property} of ${id} is not stored`;
  }

  #missingDeadLetter(log: PartitionLog, { offset }: LogRecord, sent: SentPoison): string | undefined {
    const { deadLetters } = this.#clickhouse.tables;
    const isErased = this.#server.sent.firstReceiptOf(sent) <= this.#deletedAt(personKey(sent.row));
    const isOfRecord = (deadLetter: DeadLetterRow) =>
      deadLetter.topic === log.topic && deadLetter.partition === log.partition && deadLetter.offset === offset;
    const isKept = sent.deadLetterId ? deadLetters.has(sent.deadLetterId) : [...deadLetters.values()].some(isOfRecord);
    return isKept || isErased ? undefined : `the row at offset ${offset} that cannot be stored is not kept`;
  }

  /** Whether an event was stored at some time, or another one that it may repeat. */
  #wasStored(event: EventRow): boolean {
    const times = this.#stored.get(identityOf(event)) ?? new Set();
    return (
      times.has(event.timestamp) || (event.stamped === 1 && [...times].some((time) => areNear(time, event.timestamp)))
    );
  }

  /** Whether the order of storage decides what becomes of an event: a deletion was lost, or its fate is open. */
  #isUncertain(event: EventRow): boolean {
    const { sent } = this.#server;
    const { deletions } = this.#clickhouse.tables;
    return sent.hasLost ? sent.usersOf(event).some((user) => deletions.has(user)) : sent.fates().open.has(event);
  }

  /** Notes what is wrong. */
  report(violation: string): void {
    const { name } = this.#clickhouse.replica ?? this.#server;
    this.#world.report(name === '' ? violation : `${name}: ${violation}`);
  }
}

/**
 * Returns the change that decides a property, by what was sent: the last one that sets or removes it since the deletion, otherwise the
 * first that sets it once; of a user who was deleted, the last of the week of the first.
 */
function decidingChange(changes: readonly ChangeRow[], deletedAt: number): ChangeRow | undefined {
  const since = changes.filter(({ version }) => version > deletedAt).toSorted((a, b) => a.version - b.version);
  const [ofOnce, others] = [true, false].map((once) =>
    since.filter(({ operation }) => (operation === 'set_once') === once),
  );
  const last = others?.at(-1);
  const first = ofOnce?.[0];
  if (last || deletedAt === 0 || !first) return last ?? first;
  return ofOnce?.findLast(({ version }) => Math.floor(version / WEEK_US) === Math.floor(first.version / WEEK_US));
}

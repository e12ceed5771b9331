import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { nameOf as partitionName } from '@sluice/writer/protocol/position';
import { AssignerProtocol } from 'kafkajs';
import {
  type DeadLetterRow,
  eventKey,
  isHidden,
  type StagedEvent,
  type StoredEvent,
  userKey,
} from '../clickhouse/tables.ts';
import type { LogRecord, PartitionLog } from '../kafka/partition-log.ts';
import type { World } from './world.ts';

/** A row that a producer sent. */
export type SentRow =
  | { readonly kind: 'event'; readonly row: EventRow }
  | { readonly kind: 'change'; readonly row: ChangeRow }
  /** Nothing that can be stored: it has to become a dead letter. */
  | {
      readonly kind: 'poison';
      readonly row: Pick<EventRow, 'workspace_id' | 'user_id' | 'received_at'>;
      /** Repeats of a call that was rejected become one dead letter. */
      readonly deadLetterId?: string;
    };

/** What a producer was told that it is accepted, compared with what is stored: at each moment, and in the end. */
export class Oracle {
  readonly #world: World;
  readonly #sent = new Map<LogRecord, readonly SentRow[]>();
  /** The keys of all events that were sent. */
  readonly #sentKeys = new Set<string>();
  /** For whom each event was sent. */
  readonly #users = new Map<string, Set<string>>();
  /** Records that Kafka has lost. */
  readonly #lost = new Set<LogRecord>();
  /** The logs that have lost records. What was fetched before may be committed in place of what the log has now. */
  readonly #cutOff = new Set<PartitionLog>();
  /** What was stored at some time, by the key of the event. Erased events are among them. */
  #stored = new Set<string>();
  /** Users that only a repeat has named. */
  readonly #repeatedOnlyFor = new Set<string>();
  /** Up to which record of each log the commits are checked. */
  readonly #checked = new Map<PartitionLog, number>();
  /** Whether ClickHouse was restored from a backup. */
  hasRestored = false;
  /** Whether an event that was sent for several users may be a repeat for the later ones: their order is not known. */
  mayShareEvents = false;
  /** What is wrong, if anything. */
  violation: string | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  addSent(record: LogRecord, rows: readonly SentRow[]): void {
    this.#sent.set(record, rows);
    for (const sent of rows) {
      if (sent.kind !== 'event') continue;
      this.#sentKeys.add(eventKey(sent.row));
      const identity = identityOf(sent.row);
      this.#users.set(identity, (this.#users.get(identity) ?? new Set()).add(userOf(sent.row)));
    }
  }

  addRepeatFor(user: string): void {
    this.#repeatedOnlyFor.add(user);
  }

  addLost(log: PartitionLog, records: readonly LogRecord[]): void {
    for (const record of records) this.#lost.add(record);
    this.#cutOff.add(log);
  }

  /** Whether Kafka has lost records. */
  get hasLost(): boolean {
    return this.#lost.size > 0;
  }

  /** Returns a function that restores ClickHouse as it is now. */
  backUp(): () => void {
    const { clickhouse } = this.#world;
    const tables = structuredClone(clickhouse.tables);
    const stored = new Set(this.#stored);
    return () => {
      clickhouse.tables = tables;
      this.#stored = stored;
      this.hasRestored = true;
      this.#checked.clear();
    };
  }

  reportConflict(row: StagedEvent): void {
    this.report(`${nameOf(row)} is stored by two inserts at once`);
  }

  /** Checks events that become visible. */
  checkInsert(rows: readonly StoredEvent[]): void {
    const { tables } = this.#world.clickhouse;
    const visible = new Set(tables.events.filter((event) => !isHidden(tables, event)).map(identityOf));
    for (const row of rows) {
      const identity = identityOf(row);
      if (visible.has(identity)) this.report(`${nameOf(row)} is stored twice`);
      visible.add(identity);
      this.#stored.add(identity);
      if (!this.#sentKeys.has(eventKey(row))) this.report(`${nameOf(row)} was never sent`);
    }
  }

  /**
   * Checks that everything before an offset is stored, when it is committed, and that its owner commits it.
   *
   * @param assignment the committing member's, as kafkajs encodes it
   */
  checkCommit(log: PartitionLog, offset: number, assignment: Buffer | undefined): void {
    const { [log.topic]: own } = (assignment && AssignerProtocol.MemberAssignment.decode(assignment)?.assignment) ?? {};
    if (!own?.includes(log.partition))
      this.report(`offset ${offset} of ${partitionName(log)} is committed by a writer that does not own it`);
    if (!this.#cutOff.has(log)) this.#checkStored(log, offset);
  }

  #checkStored(log: PartitionLog, offset: number): void {
    const from = this.#checked.get(log) ?? 0;
    for (const record of log.from(from)) {
      if (Number(record.offset) >= offset) break;
      for (const sent of this.#sent.get(record) ?? []) {
        const missing = this.#missing(log, record, sent);
        if (missing) this.report(`offset ${offset} of ${partitionName(log)} is committed, but ${missing}`);
      }
    }
    this.#checked.set(log, Math.max(from, offset));
  }

  /** Returns whether everything is stored and committed, but for partitions that are halted. */
  isDone(): boolean {
    const { kafka, clickhouse, topics } = this.#world;
    const { positions, halts } = clickhouse.tables;
    return kafka.logs.every((log) => {
      const name = partitionName(log);
      if (!Object.values(topics).includes(log.topic) || log.high === 0) return true;
      if (halts.get(name)?.isResumed === false) return true;
      const last = log.records.at(-1);
      const end = last ? Number(last.offset) + 1 : log.high;
      return (kafka.group.offsets.get(name) ?? 0) >= end && (positions.get(name)?.nextOffset ?? 0) >= end;
    });
  }

  /** Checks everything in the end. @param isErased whether all deleted users are erased */
  checkEnd(isErased: boolean): void {
    const { kafka } = this.#world;
    for (const log of kafka.logs) {
      this.#checked.delete(log);
      this.#checkStored(log, log.high);
    }
    this.#checkEvents();
    this.#checkDeletions();
    this.#checkEntities();
    if (!this.hasLost) this.#checkProperties();
    if (isErased) this.#checkErased();
  }

  /** Nothing is left of deleted users but what came after their deletions. */
  #checkErased(): void {
    const { events, properties, sightings, entities, deletions } = this.#world.clickhouse.tables;
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
    for (const { workspace, kind, id, version } of entities.values()) {
      if (kind === 'user' && isLeft(workspace, id, version)) this.report(`that ${id} was seen is not erased`);
    }
  }

  #checkEvents(): void {
    const { tables } = this.#world.clickhouse;
    const visible = tables.events.filter((event) => !isHidden(tables, event));
    const byIdentity = Map.groupBy(visible, identityOf);
    for (const [, [first, second]] of byIdentity) if (first && second) this.report(`${nameOf(first)} is stored twice`);
    const deletions = this.#deletions();
    for (const [identity, copies] of Map.groupBy(this.#rowsOf(this.#kept()).events, identityOf)) {
      const isCovered = (event: EventRow) => event.received_at <= (deletions.get(userOf(event)) ?? 0);
      if (this.#isUncertain(identity)) continue;
      const last = copies.at(-1);
      if (last && !isCovered(last) && !byIdentity.has(identity)) this.report(`${nameOf(last)} is lost`);
    }
  }

  #checkDeletions(): void {
    const { tables } = this.#world.clickhouse;
    for (const [user, version] of this.#deletions()) {
      if ((tables.deletions.get(user) ?? 0) < version) this.report(`a deletion of ${user} is lost`);
    }
  }

  #checkEntities(): void {
    const { tables } = this.#world.clickhouse;
    for (const event of tables.events.filter((row) => !isHidden(tables, row))) {
      const entity = tables.entities.get([event.workspace_id, 'user', event.user_id, ''].join('\0'));
      if (event.user_id !== '' && (entity?.version ?? 0) < event.received_at) {
        this.report(`the user of ${nameOf(event)} was not seen`);
      }
      const organization = tables.entities.get([event.workspace_id, 'organization', event.group_id, ''].join('\0'));
      if (event.group_id !== '' && (organization?.version ?? 0) < event.received_at) {
        this.report(`the organization of ${nameOf(event)} was not seen`);
      }
    }
    // Where the original was lost, its repeat takes its place for a while.
    if (this.hasLost || this.hasRestored) return;
    for (const { kind, id } of tables.entities.values()) {
      if (kind === 'user' && this.#repeatedOnlyFor.has(id)) this.report(`${id} exists, and only a repeat names it`);
    }
  }

  #checkProperties(): void {
    const { tables } = this.#world.clickhouse;
    const deletions = this.#deletions();
    const expected = new Map<string, ChangeRow>();
    for (const change of this.#rowsOf(this.#kept()).changes) {
      if (change.operation !== 'set' && change.operation !== 'remove') continue;
      if (change.version <= (deletions.get(userKey(change.workspace_id, change.id)) ?? 0)) continue;
      const key = [change.workspace_id, change.kind, change.id, change.property].join('\0');
      const before = expected.get(key);
      if (!before || before.version < change.version) expected.set(key, change);
    }
    for (const [key, { id, property, value }] of expected) {
      const stored = tables.properties.get(key)?.change.value;
      if (stored !== value) this.report(`${property} of ${id} is ${stored}, not ${value}`);
    }
  }

  /** Returns what of a record is missing in ClickHouse. */
  #missing(log: PartitionLog, record: LogRecord, sent: SentRow): string | undefined {
    const { tables } = this.#world.clickhouse;
    if (sent.kind === 'poison') return this.#missingDeadLetter(log, record, sent);
    if (sent.kind === 'event') {
      const deleted = tables.deletions.get(userOf(sent.row)) ?? 0;
      const identity = identityOf(sent.row);
      const isSettled = this.#stored.has(identity) || sent.row.received_at <= deleted || this.#isUncertain(identity);
      return isSettled ? undefined : `${nameOf(sent.row)} is not stored`;
    }
    const { operation, workspace_id, kind, id, property, version } = sent.row;
    const deleted = tables.deletions.get(userKey(workspace_id, id)) ?? 0;
    if (operation === 'delete') return deleted >= version ? undefined : `the deletion of ${id} is not stored`;
    if (operation !== 'set' || (kind === 'user' && version <= deleted)) return undefined;
    const stored = tables.properties.get([workspace_id, kind, id, property].join('\0'));
    return (stored?.change.version ?? 0) >= version ? undefined : `${property} of ${id} is not stored`;
  }

  #missingDeadLetter(
    log: PartitionLog,
    { offset }: LogRecord,
    { row, deadLetterId }: SentRow & { readonly kind: 'poison' },
  ): string | undefined {
    const { deadLetters, deletions } = this.#world.clickhouse.tables;
    const isErased = row.received_at <= (deletions.get(userOf(row)) ?? 0);
    const isOfRecord = (deadLetter: DeadLetterRow) =>
      deadLetter.topic === log.topic && deadLetter.partition === log.partition && deadLetter.offset === offset;
    const isKept = deadLetterId ? deadLetters.has(deadLetterId) : [...deadLetters.values()].some(isOfRecord);
    return isKept || isErased ? undefined : `the row at offset ${offset} that cannot be stored is not kept`;
  }

  /** Where a deletion was lost, or came before or after a repeat for another user, the order of storage decides. */
  #isUncertain(identity: string): boolean {
    const { deletions } = this.#world.clickhouse.tables;
    const users = [...(this.#users.get(identity) ?? [])];
    const isOpen = this.hasLost || (this.mayShareEvents && users.length > 1);
    return isOpen && users.some((user) => deletions.has(user));
  }

  /** The versions of the deletions that Kafka has kept in any partition. */
  #deletions(): ReadonlyMap<string, number> {
    const versions = new Map<string, number>();
    for (const { operation, workspace_id, id, version } of this.#rowsOf(this.#kept()).changes) {
      const user = userKey(workspace_id, id);
      if (operation === 'delete') versions.set(user, Math.max(version, versions.get(user) ?? 0));
    }
    return versions;
  }

  /** Retention may have deleted them. */
  #kept(): readonly LogRecord[] {
    return [...this.#sent.keys()].filter((record) => !this.#lost.has(record));
  }

  #rowsOf(records: readonly LogRecord[]): {
    readonly events: readonly EventRow[];
    readonly changes: readonly ChangeRow[];
  } {
    const rows = records.flatMap((record) => this.#sent.get(record) ?? []);
    return {
      events: rows.flatMap((sent) => (sent.kind === 'event' ? [sent.row] : [])),
      changes: rows.flatMap((sent) => (sent.kind === 'change' ? [sent.row] : [])),
    };
  }

  /** Notes what is wrong. */
  report(violation: string): void {
    this.#world.note(`WRONG: ${violation}`);
    this.violation ??= violation;
  }
}

/** What makes two events the same: stamped ones by their uuid alone. */
function identityOf(event: EventRow | StagedEvent): string {
  return event.stamped ? `${event.workspace_id}\0${event.uuid}` : eventKey(event);
}

function userOf({ workspace_id, user_id = '' }: Pick<EventRow, 'workspace_id' | 'user_id'>): string {
  return userKey(workspace_id, user_id);
}

function nameOf({ uuid, user_id }: EventRow): string {
  return `event ${uuid.slice(0, 8)} of ${user_id || 'nobody'}`;
}

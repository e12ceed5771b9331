import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { isVisitor } from '@sluice/shared/rows/deleted-person';
import { isInRange, type PartitionRange } from '@sluice/shared/servers/partition-range';
import { eventKey, personKey, userKey } from '../clickhouse/tables.ts';
import { type DeletionOfUser, factOf, type LinkFact } from '../clickhouse/visitor-owner.ts';
import type { LogRecord, PartitionLog } from '../kafka/partition-log.ts';
import { identityOf } from './event-identity.ts';
import { type Fates, fatesOf } from './fates.ts';

/** A row that a producer sent. */
export type SentRow =
  | { readonly kind: 'event'; readonly row: EventRow }
  | { readonly kind: 'change'; readonly row: ChangeRow }
  | SentPoison;

/** Nothing that can be stored: it has to become a dead letter. */
export interface SentPoison {
  readonly kind: 'poison';
  readonly row: Pick<EventRow, 'workspace_id' | 'user_id' | 'anonymous_id' | 'received_at'>;
  /** Repeats of a call that was rejected become one dead letter. */
  readonly deadLetterId?: string;
}

interface SentRecord {
  readonly log: PartitionLog;
  /** How many records were sent before it. Of one log, this is the order of the records. */
  readonly place: number;
  readonly rows: readonly SentRow[];
}

/** What is the same for all ranges. */
interface Sent {
  readonly records: Map<LogRecord, SentRecord>;
  /** The keys of all events. */
  readonly keys: Set<string>;
  /** For whom each event was sent, by workspace and uuid. */
  readonly users: Map<string, Set<string>>;
  /** Records that Kafka has lost. */
  readonly lost: Set<LogRecord>;
  /** The logs that have lost records. What was fetched before may be committed in place of what the log has now. */
  readonly cutOff: Set<PartitionLog>;
  /** When the first of the repeats that are one dead letter was received, by the id of the dead letter. */
  readonly firstReceipts: Map<string, number>;
  /** Users that only a repeat has named. */
  readonly repeatedOnlyFor: Set<string>;
}

/** What producers sent, and what Kafka has lost of it. All servers that are fed from the log are compared with it. */
export class SentRows {
  readonly #sent: Sent;
  readonly #range: PartitionRange | undefined;

  constructor(sent?: Sent, range?: PartitionRange) {
    this.#sent = sent ?? {
      ...{ records: new Map(), keys: new Set(), users: new Map(), lost: new Set(), cutOff: new Set() },
      ...{ firstReceipts: new Map(), repeatedOnlyFor: new Set() },
    };
    this.#range = range;
  }

  /** Returns what was sent to some partitions, now and later. */
  ofRange(range: PartitionRange | undefined): SentRows {
    return new SentRows(this.#sent, range);
  }

  add(log: PartitionLog, record: LogRecord, rows: readonly SentRow[]): void {
    this.#sent.records.set(record, { log, place: this.#sent.records.size, rows });
    for (const sent of rows) {
      if (sent.kind === 'poison' && sent.deadLetterId)
        this.#sent.firstReceipts.set(sent.deadLetterId, this.firstReceiptOf(sent));
      if (sent.kind !== 'event') continue;
      this.#sent.keys.add(eventKey(sent.row));
      const identity = identityOf(sent.row);
      this.#sent.users.set(identity, (this.#sent.users.get(identity) ?? new Set()).add(personKey(sent.row)));
    }
  }

  /** A deletion of the user from then on may erase the dead letter: its repeats are in any partition, and the last stored one stays. */
  firstReceiptOf({ deadLetterId = '', row }: SentPoison): number {
    return Math.min(row.received_at, this.#sent.firstReceipts.get(deadLetterId) ?? row.received_at);
  }

  addRepeatFor(user: string): void {
    this.#sent.repeatedOnlyFor.add(user);
  }

  addLost(log: PartitionLog, records: readonly LogRecord[]): void {
    for (const record of records) this.#sent.lost.add(record);
    this.#sent.cutOff.add(log);
  }

  /** Whether Kafka has lost records. */
  get hasLost(): boolean {
    return this.#sent.lost.size > 0;
  }

  isCutOff(log: PartitionLog): boolean {
    return this.#sent.cutOff.has(log);
  }

  isRepeatedOnlyFor(user: string): boolean {
    return this.#sent.repeatedOnlyFor.has(user);
  }

  rowsOf(record: LogRecord): readonly SentRow[] {
    return this.#sent.records.get(record)?.rows ?? [];
  }

  hasKeyOf(event: EventRow): boolean {
    return this.#sent.keys.has(eventKey(event));
  }

  /** Returns for whom an event was sent, each as a {@link personKey}. */
  usersOf(event: EventRow): readonly string[] {
    return [...(this.#sent.users.get(identityOf(event)) ?? [])];
  }

  /** Returns the events that Kafka has not lost. Retention may have deleted them. */
  events(): readonly EventRow[] {
    return this.#kept().flatMap(({ rows }) => rows.flatMap((sent) => (sent.kind === 'event' ? [sent.row] : [])));
  }

  /** Returns the changes that Kafka has not lost. Retention may have deleted them. */
  changes(): readonly ChangeRow[] {
    return this.#kept().flatMap(({ rows }) => rows.flatMap((sent) => (sent.kind === 'change' ? [sent.row] : [])));
  }

  /** Returns the versions of the last deletions that Kafka has kept in any partition, by {@link userKey}. */
  deletions(): ReadonlyMap<string, number> {
    const versions = new Map<string, number>();
    for (const { operation, workspace_id, id, version } of this.changes()) {
      const user = userKey(workspace_id, id);
      if (operation === 'delete') versions.set(user, Math.max(version, versions.get(user) ?? 0));
    }
    return versions;
  }

  /** Returns each deletion of a user that Kafka has kept in any partition. */
  deletionsOfUsers(): DeletionOfUser[] {
    const found = new Map<string, DeletionOfUser>();
    for (const { operation, workspace_id: workspace, id: user, version } of this.changes()) {
      if (operation === 'delete' && !isVisitor(user))
        found.set([workspace, user, version].join('\0'), { workspace, user, version });
    }
    return [...found.values()];
  }

  /** Returns what was sent of whose visitors are, as far as Kafka has kept it. */
  facts(): LinkFact[] {
    return this.changes().flatMap((change) => factOf(change) ?? []);
  }

  /** Returns what has become of the events by now. Nothing may be lost. */
  fates(): Fates {
    const sent = this.#kept().flatMap(({ log, place, rows }) => rows.map((one) => ({ log, place, sent: one })));
    const events = sent.flatMap(({ sent: one, ...at }) => (one.kind === 'event' ? [{ ...at, row: one.row }] : []));
    const deletions = sent.flatMap(({ sent: one, ...at }) => {
      if (one.kind !== 'change' || one.row.operation !== 'delete') return [];
      return [{ ...at, user: userKey(one.row.workspace_id, one.row.id), version: one.row.version }];
    });
    return fatesOf(events, deletions);
  }

  #kept(): readonly SentRecord[] {
    const { records, lost } = this.#sent;
    return [...records]
      .filter(([record, { log }]) => !lost.has(record) && isInRange(this.#range, log.partition))
      .map(([, sent]) => sent);
  }
}

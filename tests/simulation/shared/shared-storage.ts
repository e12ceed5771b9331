import { CarriedRows } from '../clickhouse/carried-rows.ts';
import { addRows } from '../clickhouse/replicated-rows.ts';
import { createTables, type StoredEvent, type Tables } from '../clickhouse/tables.ts';

/** Something that is committed: rows that are added to a table, or a change of the rows that are there. */
export interface Change {
  /** What is added. */
  readonly rows?: Tables;
  readonly change?: (tables: Tables) => void;
}

interface SharedStorageOptions {
  /** Called with events that become visible, before they are. */
  readonly onEvents: (rows: readonly StoredEvent[]) => void;
  /** Called after pending deletions were removed, with what was there before. */
  readonly onForgotten: (before: Tables['pendingDeletions']) => void;
}

/** The keys of the events that an insert stores, from its look-up until none of them can become visible any more. */
export interface Inserting {
  /** What begins the query ids of its attempt. */
  readonly attempt: string;
  readonly keys: ReadonlySet<string>;
}

/** What all replicas have in common: the rows of tables, which a commit changes at one moment. */
export class SharedStorage {
  readonly #options: SharedStorageOptions;
  readonly tables: Tables = createTables();
  readonly carried = new CarriedRows();
  readonly inserting = new Set<Inserting>();
  /** The keys that another insert was storing when an attempt looked for its repeats. */
  readonly conflicts = new Map<string, ReadonlySet<string>>();
  /** Called with each commit. */
  readonly followers = new Set<(change: Change) => void>();

  constructor(options: SharedStorageOptions) {
    this.#options = options;
  }

  commit(change: Change): void {
    const { pendingDeletions } = this.tables;
    if (change.rows && change.rows.events.length > 0) this.#options.onEvents(change.rows.events);
    apply(this.tables, change);
    if (this.tables.pendingDeletions !== pendingDeletions && change.change) this.#options.onForgotten(pendingDeletions);
    for (const follow of this.followers) follow(change);
  }

  /** Whether an insert of another attempt is storing an event. */
  isBeingInserted(key: string, attempt: string): boolean {
    return [...this.inserting].some((one) => one.attempt !== attempt && one.keys.has(key));
  }
}

/** Does to tables what was committed. */
export function apply(tables: Tables, { rows, change }: Change): void {
  if (rows) addRows(tables, rows);
  change?.(tables);
}

import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseReader } from './clickhouse-reader.ts';
import { ConnectionFailure } from './read-failures.ts';
import type { Sql } from './sql.ts';
import type { Deletion, FastSets, Tables } from './tables.ts';

/** What queries read, and what of it may be returned. */
export interface Store {
  /** Tells it from others; empty where there is one. */
  readonly name: string;
  /** The id that the database has recorded; undefined where there is one store. */
  readonly databaseId?: string;
  readonly reader: ClickHouseReader;
  readonly tables: Tables;
  readonly visibility: Visibility;
  /** Aborts when the store does not respond, and another one does. Default: it is never given up. */
  readonly givenUp?: AbortSignal;
}

/** The stores that queries may read. */
export interface Stores {
  /**
   * Returns the store to read now.
   *
   * @param failed the names of those that have failed
   * @throws {ConnectionFailure} when there is no other one
   */
  choose(failed: ReadonlySet<string>): Promise<Store>;
  /** Whether what one of them has is elsewhere as well. */
  readonly areMirrored: boolean;
}

/** The stores that streams read: each stream stays at one as long as that can be read. */
export interface StreamStores extends Stores {
  /** The name of the store of positions that name none; undefined when there is no such store. */
  readonly unnamed: string | undefined;
  /**
   * As {@link Stores.choose}.
   *
   * @param preferred the name of the one to choose if it can be read now; otherwise it is the one that requests read
   */
  choose(failed: ReadonlySet<string>, preferred?: string): Promise<Store>;
  /** Returns the store of a name, unless it must not be read now: it is gone, or lags behind another one. */
  readable(name: string): Store | undefined;
}

/** One store for everything. */
export class OneStore implements StreamStores {
  readonly areMirrored = false;
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async choose(failed: ReadonlySet<string>): Promise<Store> {
    if (failed.size > 0) throw new ConnectionFailure('there is no other server');
    return this.#store;
  }

  get unnamed(): string {
    return this.#store.name;
  }

  readable(name: string): Store | undefined {
    return name === this.#store.name ? this.#store : undefined;
  }
}

/** How often a request waits when all mirrors have failed, and tries those again that respond by then. */
const ROUNDS_MAX = 2;

/** How long it waits, in milliseconds: what is known of a server is not older. */
const ROUND_MS = 500;

/** The store that the queries of a request read: the same for all of them, unless it fails and there is another one. */
export class RequestStore {
  readonly #stores: Stores;
  #failed: ReadonlySet<string> = new Set();
  #chosen: Promise<Store> | undefined;
  /** What is read in place of each that has failed. */
  readonly #others = new Map<Store, Promise<Store | undefined>>();
  #rounds = 0;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** @throws {ConnectionFailure} when there is none */
  async current(): Promise<Store> {
    this.#chosen ??= this.#choose();
    return await this.#chosen;
  }

  /**
   * Returns the store to read in place of one that has failed, also from now on; `undefined` when there is no other one. It may be
   * one that has failed before, and responds again.
   */
  async otherThan(failed: Store): Promise<Store | undefined> {
    // Another query of the request may have found it already.
    const other = this.#others.get(failed) ?? this.#chooseOther(failed);
    this.#others.set(failed, other);
    return await other;
  }

  async #chooseOther({ name }: Store): Promise<Store | undefined> {
    this.#failed = new Set([...this.#failed, name]);
    const other = await this.#choose().catch(() => undefined);
    if (other) this.#chosen = Promise.resolve(other);
    return other;
  }

  /** @throws {ConnectionFailure} when there is none, and none responds again in time */
  async #choose(): Promise<Store> {
    for (;;) {
      try {
        return await this.#stores.choose(this.#failed);
      } catch (error) {
        if (!this.#stores.areMirrored || this.#rounds === ROUNDS_MAX) throw error;
        this.#rounds += 1;
        await sleep(ROUND_MS);
        this.#failed = new Set();
      }
    }
  }
}

/**
 * Returns what writes the condition that the events of deleted users meet until they are erased; `undefined` when no
 * deletion of the workspace is pending.
 *
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known what is deleted
 */
export type HiddenCondition = (workspace: string) => Promise<((tables: Tables) => Sql) | undefined>;

/**
 * Returns the time from which on the events of a workspace are kept: older ones have expired, and no read returns them. In
 * milliseconds, the start of a UTC day; `undefined` when all are kept.
 *
 * @throws {Problem} `store_unavailable`, `overloaded` when it is not known for how long they are kept
 */
export type KeptFrom = (workspace: string) => Promise<number | undefined>;

/** What a workspace has of links and merges. */
export interface Identities {
  /** Whether any visitor was ever linked to a user, or any user merged. */
  readonly areLinked: boolean;
  /** Whether any user was ever merged into another one. */
  readonly areMerged: boolean;
}

export const NO_IDENTITIES: Identities = { areLinked: false, areMerged: false };

/** Which of the stored events of a workspace may be returned. */
export interface Visibility {
  readonly hiddenCondition: HiddenCondition;
  readonly keptFrom: KeptFrom;
  /** Returns the deletions of a workspace that another server has, and this one perhaps not yet. Default: there are none. */
  readonly deletionsElsewhere?: (workspace: string) => readonly Deletion[];
  /**
   * Returns the deletions of those who were merged into deleted users, and have no deletion of their own yet. Default: there are none.
   *
   * @throws {Problem} `store_unavailable`, `overloaded` when it is not known
   */
  readonly mergedDeletions?: (workspace: string) => Promise<readonly Deletion[]>;
  /** Returns what is known of the fast properties of a workspace. Never fails. Default: nothing is known. */
  readonly fastSets?: (workspace: string) => Promise<FastSets>;
  /**
   * Returns what a workspace has of links and merges. Default: nothing.
   *
   * @throws {Problem} `store_unavailable`, `overloaded` when it is not known
   */
  readonly identities?: (workspace: string) => Promise<Identities>;
}

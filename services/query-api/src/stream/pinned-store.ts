import { ConnectionFailure } from '../store/read-failures.ts';
import type { Store, Stores, StreamStores } from '../store/store.ts';

/** One of several stores, and only as long as it has the same database and may be read. */
export class PinnedStore implements Stores {
  readonly areMirrored = false;
  readonly #stores: StreamStores;
  readonly #store: Store;

  constructor(stores: StreamStores, store: Store) {
    this.#stores = stores;
    this.#store = store;
  }

  get name(): string {
    return this.#store.name;
  }

  isSameAs({ name, databaseId }: Store): boolean {
    return name === this.name && databaseId === this.#store.databaseId;
  }

  get isReadable(): boolean {
    const store = this.#stores.readable(this.name);
    return store !== undefined && this.isSameAs(store);
  }

  async choose(failed: ReadonlySet<string>): Promise<Store> {
    const store = this.#stores.readable(this.name);
    if (store && this.isSameAs(store) && !failed.has(this.name)) return store;
    throw new ConnectionFailure(`${this.name} cannot be read now`);
  }
}

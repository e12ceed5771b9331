import type { CallStore, QueuedCall } from './calls.ts';

export type { CallStore, QueuedCall } from './calls.ts';

export interface OfflineStoreOptions {
  /** Clients of an origin with different services or keys need different names. Default `sluice`. */
  readonly name?: string;
  /** Called when the browser does not store a call, for example because its storage is full. Default: a warning. */
  readonly onError?: (error: unknown) => void;
}

/** What this uses of the Web Locks API. Browsers have it on pages of HTTPS and of localhost. */
interface Locks {
  request(name: string, callback: () => Promise<void>): Promise<void>;
  query(): Promise<{ readonly held?: readonly { readonly name?: string }[] }>;
}

/**
 * Keeps undelivered calls in `localStorage`: a call is stored when `track` returns, and the next page that opens sends what
 * a closed one left. IndexedDB holds more, but stores later, and a page that is being closed does not wait.
 *
 * Each call is an item of its own, and each page writes only its own items, so that pages that are open at once lose nothing
 * of each other. A lock says that a page is open: nobody else takes its calls. Without locks another page may send them as
 * well; they are stored once.
 */
export function offlineStore({ name = 'sluice', onError = console.warn }: OfflineStoreOptions = {}): CallStore {
  const page = new StoredPage(name, onError);
  return {
    add: (call) => page.add(call),
    remove: (calls) => page.remove(calls),
    load: () => page.load(),
  };
}

/** The calls of an open page in `localStorage`. */
class StoredPage {
  readonly #onError: (error: unknown) => void;
  readonly #locks = (globalThis as { navigator?: { locks?: Locks } }).navigator?.locks;
  readonly #prefix: string;
  /** The name of its lock, with which its items begin. It has the time, so that the calls of several pages are in order. */
  readonly #page: string;
  /** The items of calls, by messageId. */
  readonly #items = new Map<string, string>();
  #count = 1e9;
  #isRefused = false;
  /** Releases the lock; `undefined` while it is not held. */
  #release: (() => void) | undefined;

  constructor(name: string, onError: (error: unknown) => void) {
    this.#onError = onError;
    this.#prefix = `${name}:call:`;
    this.#page = `${this.#prefix}${Date.now()}-${crypto.getRandomValues(new Uint32Array(1))}:`;
  }

  add({ id, text }: QueuedCall): void {
    const item = `${this.#page}${++this.#count}`;
    try {
      localStorage.setItem(item, text);
      this.#items.set(id, item);
      this.#isRefused = false;
      void this.#hold();
    } catch (error) {
      if (!this.#isRefused) this.#onError(error);
      this.#isRefused = true;
    }
  }

  remove(calls: readonly QueuedCall[]): void {
    for (const { id } of calls) {
      const item = this.#items.get(id);
      if (item !== undefined && this.#items.delete(id)) localStorage.removeItem(item);
    }
    this.#letGo();
  }

  async load(): Promise<readonly QueuedCall[]> {
    const calls: QueuedCall[] = [];
    try {
      await this.#hold();
      const { held = [] } = (await this.#locks?.query()) ?? {};
      const isOpen = (item: string) => held.some((lock) => lock.name !== undefined && item.startsWith(lock.name));
      for (const item of Object.keys(localStorage).sort()) {
        if (!item.startsWith(this.#prefix) || item.startsWith(this.#page) || isOpen(item)) continue;
        const text = localStorage.getItem(item) ?? '{}';
        const call = { id: String((JSON.parse(text) as { messageId?: unknown }).messageId), text };
        localStorage.removeItem(item);
        this.add(call);
        calls.push(call);
      }
    } catch (error) {
      this.#onError(error);
    }
    this.#letGo();
    return calls;
  }

  /** Holds the lock while there are items. A page with a lock cannot be kept for the back button. */
  async #hold(): Promise<void> {
    if (this.#release) return;
    const released = new Promise<void>((resolve) => {
      this.#release = resolve;
    });
    await new Promise<void>((resolve) => {
      if (!this.#locks) return resolve();
      const request = this.#locks.request(this.#page, () => {
        resolve();
        return released;
      });
      // Some frames may not have locks.
      request.catch(resolve);
    });
  }

  #letGo(): void {
    if (this.#items.size > 0) return;
    this.#release?.();
    this.#release = undefined;
  }
}

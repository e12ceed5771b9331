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
  const { locks } = (globalThis as { navigator?: { locks?: Locks } }).navigator ?? {};
  const prefix = `${name}:call:`;
  // In the order of time, so that the calls of several pages are.
  const page = `${prefix}${Date.now()}-${crypto.getRandomValues(new Uint32Array(1))}:`;
  /** The items of calls, by messageId. */
  const items = new Map<string, string>();
  let count = 1e9;
  let isRefused = false;
  let release: (() => void) | undefined;

  /** Holds the lock while there are items. A page with a lock cannot be kept for the back button. */
  async function hold(): Promise<void> {
    if (release) return;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await new Promise<void>((resolve) => {
      if (!locks) return resolve();
      const request = locks.request(page, () => {
        resolve();
        return released;
      });
      // Some frames may not have locks.
      request.catch(resolve);
    });
  }

  function letGo(): void {
    if (items.size > 0) return;
    release?.();
    release = undefined;
  }

  function add({ id, text }: QueuedCall): void {
    const item = `${page}${++count}`;
    try {
      localStorage.setItem(item, text);
      items.set(id, item);
      isRefused = false;
      void hold();
    } catch (error) {
      if (!isRefused) onError(error);
      isRefused = true;
    }
  }

  return {
    add,
    remove(calls) {
      for (const { id } of calls) {
        const item = items.get(id);
        if (item !== undefined && items.delete(id)) localStorage.removeItem(item);
      }
      letGo();
    },
    async load() {
      const calls: QueuedCall[] = [];
      try {
        await hold();
        const { held = [] } = (await locks?.query()) ?? {};
        const isOpen = (item: string) => held.some((lock) => lock.name !== undefined && item.startsWith(lock.name));
        for (const item of Object.keys(localStorage).sort()) {
          if (!item.startsWith(prefix) || item.startsWith(page) || isOpen(item)) continue;
          const text = localStorage.getItem(item) ?? '{}';
          const call = { id: String((JSON.parse(text) as { messageId?: unknown }).messageId), text };
          localStorage.removeItem(item);
          add(call);
          calls.push(call);
        }
      } catch (error) {
        onError(error);
      }
      letGo();
      return calls;
    },
  };
}

import { signal } from '@preact/signals';

const ITEM = 'sluice-key';

/**
 * The API key, `''` without one. It is kept until the tab is closed, and sent in a header only: an address would be
 * logged.
 */
export const key = signal('');

/** `checking` until query-api has said whether the key may read; `open` when it may. */
export const access = signal<'checking' | 'open' | 'closed'>('checking');

/** Uses the key that this tab had before the page was loaded again. */
export function restoreKey(): void {
  key.value = sessionStorage.getItem(ITEM) ?? '';
}

/** Uses a key from now on, `''` for none. */
export function useKey(value: string): void {
  if (value === '') sessionStorage.removeItem(ITEM);
  else sessionStorage.setItem(ITEM, value);
  key.value = value;
}

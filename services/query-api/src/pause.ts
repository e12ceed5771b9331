import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work for one request may block the event loop before other requests have their turn, in milliseconds. */
const TURN_MS = 10;

/**
 * Returns a function that long work calls often, and awaits. It waits for other requests when the work has taken long
 * since the last time.
 */
export function createPause(): () => Promise<void> | undefined {
  let since = performance.now();
  async function rest(): Promise<void> {
    await nextTurn();
    since = performance.now();
  }
  return () => (performance.now() - since < TURN_MS ? undefined : rest());
}

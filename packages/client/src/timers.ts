export type Timer = ReturnType<typeof setTimeout>;

/** The delay of a timer is a 32-bit integer. */
export const DELAY_MS_MAX = 2 ** 31 - 1;

/** Like `setTimeout`, but does not keep a Node.js process alive. */
export function later(callback: () => void, delayMs: number): Timer {
  const timer = setTimeout(callback, delayMs);
  // In a browser it is a number.
  (timer as { unref?(): void }).unref?.();
  return timer;
}

import { setTimeout as delay } from 'node:timers/promises';

/**
 * A test has waited for something that did not happen in time. Only helpers that wait throw it: what compares throws
 * anything else. A file whose only failures are these is run once more (see tests/README.md).
 */
export class TooLate extends Error {
  static {
    TooLate.prototype.name = 'TooLate';
  }
}

const POLL_INTERVAL_MS = 100;

/** So long that it only ends a wait for something that never happens, also on a busy machine. */
const UNTIL_TIMEOUT_MS = 240_000;

/**
 * Calls `poll` until it resolves to something truthy, and returns that.
 *
 * @param what what it waits for, for the error
 * @param timeoutMs default 240,000
 * @throws {TooLate} after `timeoutMs`, and whatever `poll` throws
 */
export async function until<Result>(
  what: string,
  poll: () => Promise<Result>,
  timeoutMs: number = UNTIL_TIMEOUT_MS,
): Promise<NonNullable<Result>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const result = await poll();
    if (result) return result;
    if (performance.now() > deadline) throw new TooLate(`waited ${timeoutMs} ms for ${what}`);
    await delay(POLL_INTERVAL_MS);
  }
}

/**
 * For what must not take long on a machine that does nothing else.
 *
 * @throws {TooLate} when it took `mostMs` milliseconds or more
 */
export function expectInTime(what: string, tookMs: number, mostMs: number): void {
  if (tookMs >= mostMs) throw new TooLate(`${what} took ${Math.round(tookMs)} ms, not less than ${mostMs}`);
}

/** Returns a function for `.catch` that adds a text to the message of an error, and throws the same error. */
export function explain(text: () => string): (error: Error) => never {
  return (error) => {
    error.message += `\n${text()}`;
    throw error;
  };
}

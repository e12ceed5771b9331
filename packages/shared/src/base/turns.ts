import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work for one request may block the event loop before other requests have their turn, in milliseconds. */
const TURN_MS = 10;

/** The turns of long work for one request, between which other requests have theirs. */
export class Turns {
  #startedAt = performance.now();

  /** Waits for other requests when the turn has taken long. Long work calls it often, and awaits it. */
  next(): Promise<void> | undefined {
    return performance.now() - this.#startedAt < TURN_MS ? undefined : this.#wait();
  }

  async #wait(): Promise<void> {
    await nextTurn();
    this.#startedAt = performance.now();
  }
}

import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { Pause } from '@sluice/submissions/reading/pause';

/** A body of at most this many bytes is begun at once. A larger one waits for its turn first. */
const READ_AT_ONCE_BYTES_MAX = 64 * 1_024;

/** How long work may block the event loop before other work runs, in milliseconds. */
const SLICE_MS = 5;

/**
 * Runs long work one piece at a time: FIFO within a workspace, round-robin between workspaces. So the event loop is free
 * for short requests most of the time, and only one large body is expanded in memory.
 */
export class BodyQueue {
  readonly #waiting = new Map<string, (() => void)[]>();
  #busy = false;

  /**
   * Runs `work` on a body: at once on a small one, and when it is the workspace's turn on a large one. A small one that
   * takes as long as a large one waits for its turn, too, at its first pause.
   */
  async read<Result>(workspace: string, body: Buffer, work: (pause: Pause) => Promise<Result>): Promise<Result> {
    let hasTurn = false;
    const takeTurn = async () => {
      if (hasTurn) return;
      await this.#wait(workspace);
      hasTurn = true;
    };
    if (body.length > READ_AT_ONCE_BYTES_MAX) await takeTurn();
    const slices = new Slices(takeTurn);
    try {
      return await work(() => slices.pause());
    } finally {
      if (hasTurn) this.#next();
    }
  }

  async #wait(workspace: string): Promise<void> {
    if (!this.#busy) {
      this.#busy = true;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(workspace);
    if (queue) queue.push(resolve);
    else this.#waiting.set(workspace, [resolve]);
    await promise;
  }

  #next(): void {
    const [first] = this.#waiting;
    if (!first) {
      this.#busy = false;
      return;
    }
    const [workspace, queue] = first;
    const start = queue.shift();
    // A Map keeps the order of insertion: the workspace goes to the end.
    this.#waiting.delete(workspace);
    if (queue.length > 0) this.#waiting.set(workspace, queue);
    start?.();
  }
}

/** Slices of time in which work blocks the event loop. */
class Slices {
  readonly #whilePaused: () => Promise<void>;
  #since = performance.now();

  /** @param whilePaused awaited in each pause */
  constructor(whilePaused: () => Promise<void>) {
    this.#whilePaused = whilePaused;
  }

  /** See {@link Pause}. */
  pause(): Promise<void> | undefined {
    return performance.now() - this.#since < SLICE_MS ? undefined : this.#rest();
  }

  async #rest(): Promise<void> {
    await this.#whilePaused();
    await nextTurnOfEventLoop();
    this.#since = performance.now();
  }
}

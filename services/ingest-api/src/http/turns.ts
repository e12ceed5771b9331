import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { Pause } from '@sluice/submissions/pause';

/** A body of at most this many bytes is begun at once. A larger one waits for its turn first. */
const READ_AT_ONCE_BYTES_MAX = 64 * 1_024;

/** How long work may block the event loop before other work runs, in milliseconds. */
const SLICE_MS = 5;

export interface Turns {
  /**
   * Runs `work` on a body: at once on a small one, and when it is the workspace's turn on a large one. A small one that
   * takes as long as a large one waits for its turn, too, at its first pause.
   */
  read<Result>(workspace: string, body: Buffer, work: (pause: Pause) => Promise<Result>): Promise<Result>;
}

/**
 * Runs long work one piece at a time: FIFO within a workspace, round-robin between workspaces. So the event loop is free
 * for short requests most of the time, and only one large body is expanded in memory.
 */
export function createTurns(): Turns {
  const waiting = new Map<string, (() => void)[]>();
  let busy = false;

  function next(): void {
    const [first] = waiting;
    if (!first) {
      busy = false;
      return;
    }
    const [workspace, queue] = first;
    const start = queue.shift();
    // A Map keeps the order of insertion: the workspace goes to the end.
    waiting.delete(workspace);
    if (queue.length > 0) waiting.set(workspace, queue);
    start?.();
  }

  async function wait(workspace: string): Promise<void> {
    if (!busy) {
      busy = true;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = waiting.get(workspace);
    if (queue) queue.push(resolve);
    else waiting.set(workspace, [resolve]);
    await promise;
  }

  async function take<Result>(workspace: string, work: (pause: Pause) => Promise<Result>): Promise<Result> {
    await wait(workspace);
    try {
      return await work(createPause());
    } finally {
      next();
    }
  }

  async function begin<Result>(workspace: string, work: (pause: Pause) => Promise<Result>): Promise<Result> {
    let hasTurn = false;
    const pause = createPause(async () => {
      if (hasTurn) return;
      await wait(workspace);
      hasTurn = true;
    });
    try {
      return await work(pause);
    } finally {
      if (hasTurn) next();
    }
  }

  return {
    read: (workspace, body, work) => (body.length <= READ_AT_ONCE_BYTES_MAX ? begin : take)(workspace, work),
  };
}

/** @param whilePaused awaited in each pause */
function createPause(whilePaused?: () => Promise<void>): Pause {
  let since = performance.now();

  async function rest(): Promise<void> {
    await whilePaused?.();
    await nextTurnOfEventLoop();
    since = performance.now();
  }

  return () => (performance.now() - since < SLICE_MS ? undefined : rest());
}

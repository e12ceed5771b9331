import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';

/** How long work may block the event loop before other work runs, in milliseconds. */
const SLICE_MS = 5;

/**
 * Long work calls this often. It returns a promise to await when the work has blocked the event loop for long enough,
 * else `undefined`.
 */
export type Pause = () => Promise<void> | undefined;

/** For work too short to pause. */
export const NO_PAUSE: Pause = () => undefined;

export interface Turns {
  /** Runs `work` when it is the workspace's turn. */
  take<Result>(workspace: string, work: (pause: Pause) => Promise<Result>): Promise<Result>;
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

  return {
    async take(workspace, work) {
      await wait(workspace);
      try {
        return await work(createPause());
      } finally {
        next();
      }
    },
  };
}

function createPause(): Pause {
  let since = performance.now();
  return () => {
    if (performance.now() - since < SLICE_MS) return undefined;
    return nextTurnOfEventLoop().then(() => {
      since = performance.now();
    });
  };
}

import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';

/** How long work may block the event loop before other work gets its turn, in milliseconds. */
const SLICE_MS = 5;

/** Long work calls this now and then; it waits when the work has blocked the event loop for long enough. */
export type Pause = () => Promise<void> | undefined;

export interface Turns {
  /** Does `work` when the workspace's turn has come. */
  take<Result>(workspace: string, work: (pause: Pause) => Promise<Result>): Promise<Result>;
}

/**
 * Long work is done one piece after another, FIFO within a workspace and round-robin between workspaces, so that the
 * event loop belongs to short requests most of the time and many large bodies do not expand in memory at once.
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
    // To the end of the line of workspaces.
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

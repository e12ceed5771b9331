/** How much may be held at once: being worked on, or waiting for its turn. */
export interface PoolLimits {
  /** Tasks that run at the same time. */
  readonly concurrency: number;
  /** Tasks that wait for another of their key. */
  readonly waitingMax: number;
  /** Of all these tasks together. */
  readonly bytesMax: number;
}

export interface PoolTask {
  /** Tasks of one key run one after the other, in the order in which they were added. */
  readonly key: string | undefined;
  readonly bytes: number;
  run(): Promise<void>;
}

/** Runs tasks side by side, as many as the limits allow, and those of one key in order. */
export interface OrderedPool {
  /** Takes a task as soon as there is room for one more. Rejects with what a task was rejected with. */
  add(task: PoolTask): Promise<void>;
  /** Resolves when nothing is left to run. Rejects with what a task was rejected with. */
  drained(): Promise<void>;
  /** Resolves when nothing runs any more, also after a failure, when what waits is not begun. */
  settled(): Promise<void>;
}

/** Creates a pool with one producer: `add` is called again only after it has resolved. */
export function createOrderedPool({ concurrency, waitingMax, bytesMax }: PoolLimits): OrderedPool {
  let running = 0;
  let waiting = 0;
  let bytes = 0;
  let failure: { readonly reason: unknown } | undefined;
  let changed = Promise.withResolvers<void>();
  /** The tasks that wait for the one of their key that runs. */
  const queues = new Map<string, PoolTask[]>();

  async function until(condition: () => boolean): Promise<void> {
    while (!failure && !condition()) await changed.promise;
    if (failure) throw failure.reason;
  }

  async function run(task: PoolTask): Promise<void> {
    running += 1;
    try {
      if (!failure) await task.run();
    } catch (reason) {
      failure ??= { reason };
    }
    running -= 1;
    bytes -= task.bytes;
    startNext(task.key);
    changed.resolve();
    changed = Promise.withResolvers<void>();
  }

  function startNext(key: string | undefined): void {
    if (key === undefined) return;
    const next = queues.get(key)?.shift();
    if (!next) {
      queues.delete(key);
      return;
    }
    waiting -= 1;
    void run(next);
  }

  return {
    async add(task) {
      await until(
        () => running < concurrency && waiting < waitingMax && (bytes === 0 || bytes + task.bytes <= bytesMax),
      );
      bytes += task.bytes;
      const queue = task.key === undefined ? undefined : queues.get(task.key);
      if (queue) {
        waiting += 1;
        queue.push(task);
        return;
      }
      if (task.key !== undefined) queues.set(task.key, []);
      void run(task);
    },
    async settled() {
      while (running > 0) await changed.promise;
    },
    drained: () => until(() => running === 0 && waiting === 0),
  };
}

/** How many tasks, and how many bytes of them, the pool holds at most. */
export interface PoolLimits {
  /** Tasks that run at the same time. */
  readonly concurrency: number;
  /** Tasks that wait for another task with their key. */
  readonly waitingMax: number;
  /** Of all tasks together, running and waiting. */
  readonly bytesMax: number;
}

export interface PoolTask {
  /** Tasks with the same key run one after the other, in the order in which they were added. */
  readonly key: string | undefined;
  readonly bytes: number;
  run(): Promise<void>;
}

/** Runs as many tasks at the same time as the limits allow, and tasks with the same key in order. */
export interface OrderedPool {
  /** Resolves when there was room for the task. Rejects with the error of a task that failed. */
  add(task: PoolTask): Promise<void>;
  /** Resolves when no task is left. Rejects with the error of a task that failed. */
  drained(): Promise<void>;
  /** Resolves when no task is running. After a failure, waiting tasks do not start. */
  settled(): Promise<void>;
}

/** Creates a pool for one producer, which calls `add` again only after it has resolved. */
export function createOrderedPool({ concurrency, waitingMax, bytesMax }: PoolLimits): OrderedPool {
  let running = 0;
  let waiting = 0;
  let bytes = 0;
  let failure: { readonly reason: unknown } | undefined;
  let changed = Promise.withResolvers<void>();
  /** By key, the tasks that wait for the running one. */
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

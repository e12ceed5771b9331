/** How many tasks, and how many bytes of them, the pool holds at most. */
export interface PoolLimits {
  /** Tasks that run at the same time. */
  readonly concurrency: number;
  /** Tasks that wait for another task with their key. */
  readonly waitingMax: number;
  /** How many bytes all tasks may have together, running and waiting. */
  readonly bytesMax: number;
}

export interface PoolTask {
  /** Tasks with the same key run one after the other, in the order in which they were added. */
  readonly key: string | undefined;
  readonly bytes: number;
  run(): Promise<void>;
}

/**
 * Runs as many tasks at the same time as the limits allow, and tasks with the same key in order. It is for one producer,
 * which calls `add` again only after it has resolved.
 */
export class OrderedPool {
  readonly #limits: PoolLimits;
  #running = 0;
  #waiting = 0;
  /** The bytes of all tasks, running and waiting. */
  #bytes = 0;
  #failure: { readonly reason: unknown } | undefined;
  /** Resolves when a task has ended. */
  #changed = Promise.withResolvers<void>();
  /** By key, the tasks that wait for the running one. */
  readonly #queues = new Map<string, PoolTask[]>();

  constructor(limits: PoolLimits) {
    this.#limits = limits;
  }

  /** Resolves when there was room for the task. Rejects with the error of a task that failed. */
  async add(task: PoolTask): Promise<void> {
    await this.#until(() => this.#hasRoomFor(task));
    this.#bytes += task.bytes;
    const queue = task.key === undefined ? undefined : this.#queues.get(task.key);
    if (queue) {
      this.#waiting += 1;
      queue.push(task);
      return;
    }
    if (task.key !== undefined) this.#queues.set(task.key, []);
    void this.#run(task);
  }

  /** Resolves when no task is left. Rejects with the error of a task that failed. */
  async drained(): Promise<void> {
    await this.#until(() => this.#running === 0 && this.#waiting === 0);
  }

  /** Resolves when no task is running. After a failure, waiting tasks do not start. */
  async settled(): Promise<void> {
    while (this.#running > 0) await this.#changed.promise;
  }

  #hasRoomFor({ bytes }: PoolTask): boolean {
    const { concurrency, waitingMax, bytesMax } = this.#limits;
    const fits = this.#bytes === 0 || this.#bytes + bytes <= bytesMax;
    return this.#running < concurrency && this.#waiting < waitingMax && fits;
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!this.#failure && !condition()) await this.#changed.promise;
    if (this.#failure) throw this.#failure.reason;
  }

  async #run(task: PoolTask): Promise<void> {
    this.#running += 1;
    try {
      if (!this.#failure) await task.run();
    } catch (reason) {
      this.#failure ??= { reason };
    }
    this.#running -= 1;
    this.#bytes -= task.bytes;
    this.#startNext(task.key);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  #startNext(key: string | undefined): void {
    if (key === undefined) return;
    const next = this.#queues.get(key)?.shift();
    if (!next) {
      this.#queues.delete(key);
      return;
    }
    this.#waiting -= 1;
    void this.#run(next);
  }
}

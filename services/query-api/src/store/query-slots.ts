import type { QueryCounts, QueryMetrics, SlotPool, WaitOutcome } from '../metrics.ts';

/** How many queries may run and wait, in all and of one workspace. */
export interface SlotLimits {
  readonly running: number;
  readonly runningOfWorkspace: number;
  readonly waiting: number;
  readonly waitingOfWorkspace: number;
}

export interface SlotRequest {
  readonly workspace: string;
  /** How long it may wait, in milliseconds. */
  readonly timeoutMs: number;
  /** Ends the wait at once. */
  readonly signal?: AbortSignal | undefined;
}

const REFUSALS = {
  full: 'too many queries are waiting',
  timed_out: 'the query waited too long for others to end',
  closed: 'the service is stopping',
} as const;

/** A query got no slot: too many wait already, none became free in time, or the service is stopping. */
export class SlotRefused extends Error {
  override readonly name = 'SlotRefused';
  readonly reason: keyof typeof REFUSALS;

  constructor(reason: SlotRefused['reason']) {
    super(REFUSALS[reason]);
    this.reason = reason;
  }
}

/** Whether no slot became free in time. */
export function isLateForSlot(error: unknown): boolean {
  return error instanceof SlotRefused && error.reason === 'timed_out';
}

interface Waiter {
  admit(): void;
  refuse(reason: unknown): void;
}

interface Workspace {
  running: number;
  /** In the order of their requests. */
  readonly waiting: Set<Waiter>;
}

/**
 * Limits the queries of one pool in one process. FIFO within a workspace, round-robin between workspaces: a workspace with
 * many queries cannot keep the others waiting. Other processes and other clients of ClickHouse are not counted.
 */
export class QuerySlots {
  readonly #limits: SlotLimits;
  readonly #metrics: QueryMetrics;
  readonly #pool: SlotPool;
  /** The workspaces with queries that run or wait. The first one has the next turn. */
  readonly #workspaces = new Map<string, Workspace>();
  #running = 0;
  #waiting = 0;
  #closed = false;

  constructor(limits: SlotLimits, metrics: QueryMetrics, pool: SlotPool) {
    this.#limits = limits;
    this.#metrics = metrics;
    this.#pool = pool;
    metrics.countQueries(pool, (): QueryCounts => ({ running: this.#running, waiting: this.#waiting }));
  }

  /**
   * Waits for a slot and returns the function that releases it; a second call of that does nothing.
   *
   * A request that holds one slot may wait for another of the same pool only if it asked for that one earlier, as a page
   * does before its count: otherwise two requests could wait for each other. A response with users holds a slot of
   * `entities` while its queries wait for others; no query waits for one of `entities`.
   *
   * @throws {SlotRefused} when too many wait already, the wait took too long, or the slots are closed
   * @throws the signal's reason, when it has aborted
   */
  async acquire(request: SlotRequest): Promise<() => void> {
    const startedAt = performance.now();
    let outcome: WaitOutcome = 'admitted';
    try {
      return await this.#admit(request);
    } catch (error) {
      outcome = error instanceof SlotRefused ? error.reason : 'cancelled';
      throw error;
    } finally {
      this.#metrics.queryWaitSeconds.observe({ pool: this.#pool, outcome }, (performance.now() - startedAt) / 1_000);
    }
  }

  /** Whether a query of another workspace waits, and could run if this one released its slot. */
  isWantedBeside(workspace: string): boolean {
    const waits = ([name, { waiting, running }]: [string, Workspace]) =>
      name !== workspace && waiting.size > 0 && running < this.#limits.runningOfWorkspace;
    return this.#running >= this.#limits.running && [...this.#workspaces].some(waits);
  }

  /** Refuses all queries that wait. Later ones run at once or are refused. */
  close(): void {
    this.#closed = true;
    for (const state of [...this.#workspaces.values()]) {
      for (const waiter of [...state.waiting]) waiter.refuse(new SlotRefused('closed'));
    }
  }

  async #admit(request: SlotRequest): Promise<() => void> {
    request.signal?.throwIfAborted();
    const { workspace } = request;
    const state = this.#workspaces.get(workspace) ?? { running: 0, waiting: new Set() };
    // A query that waits may not run, so this one overtakes none of its workspace.
    if (this.#mayRun(state)) return this.#take(workspace, state);
    if (this.#closed) throw new SlotRefused('closed');
    // One query of each workspace may always wait, however many others do.
    const isFull = this.#waiting >= this.#limits.waiting || state.waiting.size >= this.#limits.waitingOfWorkspace;
    if (isFull && state.waiting.size > 0) throw new SlotRefused('full');
    this.#workspaces.set(workspace, state);
    return await this.#wait(request, state);
  }

  #mayRun(state: Workspace): boolean {
    return this.#running < this.#limits.running && state.running < this.#limits.runningOfWorkspace;
  }

  /** Takes a slot and gives this workspace the last turn. */
  #take(workspace: string, state: Workspace): () => void {
    this.#running += 1;
    state.running += 1;
    this.#workspaces.delete(workspace);
    this.#workspaces.set(workspace, state);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#running -= 1;
      state.running -= 1;
      this.#forgetIdle(workspace, state);
      this.#admitNext();
    };
  }

  /** Admits the next query; one slot that was released admits one at most. */
  #admitNext(): void {
    for (const state of this.#workspaces.values()) {
      const [first] = state.waiting;
      if (first === undefined || !this.#mayRun(state)) continue;
      first.admit();
      return;
    }
  }

  #wait({ workspace, timeoutMs, signal }: SlotRequest, state: Workspace): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        state.waiting.delete(waiter);
        this.#waiting -= 1;
      };
      const waiter: Waiter = {
        admit: () => {
          leave();
          resolve(this.#take(workspace, state));
        },
        refuse: (reason) => {
          leave();
          this.#forgetIdle(workspace, state);
          reject(reason);
        },
      };
      const onAbort = () => waiter.refuse(signal?.reason);
      const timer = setTimeout(() => waiter.refuse(new SlotRefused('timed_out')), timeoutMs);
      signal?.addEventListener('abort', onAbort);
      state.waiting.add(waiter);
      this.#waiting += 1;
    });
  }

  #forgetIdle(workspace: string, state: Workspace): void {
    if (state.running === 0 && state.waiting.size === 0) this.#workspaces.delete(workspace);
  }
}

import { Gauge, Histogram, type Registry } from 'prom-client';

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

/** Admits queries one by one, so that no workspace keeps the others waiting. */
export interface QuerySlots {
  /**
   * Waits for a slot, and returns what gives it back; calling that again does nothing.
   *
   * Of one workspace, who came first is admitted first; the workspaces take turns. So whoever holds a slot may wait for
   * another only if that was asked for earlier, as the page of a request does for its count.
   *
   * @throws {SlotRefused} when too many wait already, the wait took too long, or nobody may wait any more
   * @throws the signal's reason, when it has aborted
   */
  acquire(request: SlotRequest): Promise<() => void>;
  /** From now on nobody waits: who does is refused, and who comes runs at once or is refused. */
  close(): void;
}

const REFUSALS = {
  full: 'too many queries are waiting',
  timed_out: 'the query waited too long for others to end',
  closed: 'the service is stopping',
} as const;

/** No slot for a query: too many wait for one already, none became free in time, or nobody may wait any more. */
export class SlotRefused extends Error {
  override readonly name = 'SlotRefused';
  readonly reason: keyof typeof REFUSALS;

  constructor(reason: SlotRefused['reason']) {
    super(REFUSALS[reason]);
    this.reason = reason;
  }
}

interface Waiter {
  admit(): void;
  refuse(reason: unknown): void;
}

interface Workspace {
  running: number;
  /** In the order in which they came. */
  readonly waiting: Set<Waiter>;
}

/** Creates the slots of one process; others, and other clients of ClickHouse, know nothing of them. */
export function createQuerySlots(limits: SlotLimits, registry: Registry): QuerySlots {
  /** Those with queries that run or wait. The one whose turn it is comes first. */
  const workspaces = new Map<string, Workspace>();
  let running = 0;
  let waiting = 0;
  let closed = false;
  const waited = createMetrics(registry, () => ({ running, waiting }));

  function mayRun(state: Workspace): boolean {
    return running < limits.running && state.running < limits.runningOfWorkspace;
  }

  function forgetIdle(workspace: string, state: Workspace): void {
    if (state.running === 0 && state.waiting.size === 0) workspaces.delete(workspace);
  }

  /** Takes a slot; the others' turns come before the next one of this workspace. */
  function take(workspace: string, state: Workspace): () => void {
    running += 1;
    state.running += 1;
    workspaces.delete(workspace);
    workspaces.set(workspace, state);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      running -= 1;
      state.running -= 1;
      forgetIdle(workspace, state);
      admitNext();
    };
  }

  /** A slot that was given back lets at most one query run. */
  function admitNext(): void {
    for (const state of workspaces.values()) {
      const [first] = state.waiting;
      if (first === undefined || !mayRun(state)) continue;
      first.admit();
      return;
    }
  }

  function wait({ workspace, timeoutMs, signal }: SlotRequest, state: Workspace): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        admit() {
          leave();
          resolve(take(workspace, state));
        },
        refuse(reason) {
          leave();
          forgetIdle(workspace, state);
          reject(reason);
        },
      };
      const onAbort = () => waiter.refuse(signal?.reason);
      const timer = setTimeout(() => waiter.refuse(new SlotRefused('timed_out')), timeoutMs);
      signal?.addEventListener('abort', onAbort);
      state.waiting.add(waiter);
      waiting += 1;

      function leave(): void {
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        state.waiting.delete(waiter);
        waiting -= 1;
      }
    });
  }

  async function admission(request: SlotRequest): Promise<() => void> {
    request.signal?.throwIfAborted();
    const state = workspaces.get(request.workspace) ?? { running: 0, waiting: new Set() };
    // Whoever waits may not run, so nobody is overtaken here.
    if (mayRun(state)) return take(request.workspace, state);
    if (closed) throw new SlotRefused('closed');
    // One query of each workspace may always wait: those of others must not keep it out.
    const isFull = waiting >= limits.waiting || state.waiting.size >= limits.waitingOfWorkspace;
    if (isFull && state.waiting.size > 0) throw new SlotRefused('full');
    workspaces.set(request.workspace, state);
    return await wait(request, state);
  }

  return {
    async acquire(request) {
      const startedAt = performance.now();
      let outcome: WaitOutcome = 'admitted';
      try {
        return await admission(request);
      } catch (error) {
        outcome = error instanceof SlotRefused ? error.reason : 'cancelled';
        throw error;
      } finally {
        waited(outcome, (performance.now() - startedAt) / 1_000);
      }
    },
    close() {
      closed = true;
      for (const state of [...workspaces.values()]) {
        for (const waiter of [...state.waiting]) waiter.refuse(new SlotRefused('closed'));
      }
    },
  };
}

type WaitOutcome = 'admitted' | 'cancelled' | SlotRefused['reason'];

/** No label names a workspace: there may be any number of them. */
function createMetrics(
  registry: Registry,
  now: () => { readonly running: number; readonly waiting: number },
): (outcome: WaitOutcome, seconds: number) => void {
  new Gauge({
    name: 'sluice_queries',
    help: 'Queries that run and that wait for a slot.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(now())) this.set({ state }, count);
    },
  });
  const waited = new Histogram({
    name: 'sluice_query_wait_seconds',
    help: 'Time that queries waited for a slot, by how the wait ended.',
    labelNames: ['outcome'],
    buckets: [0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  return (outcome, seconds) => waited.observe({ outcome }, seconds);
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import type { SimulatedProcess } from './simulated-process.ts';

/** The virtual time at which each simulation begins: a Sunday noon, in milliseconds since 1970. */
const BEGINS_AT = Date.UTC(2026, 2, 1, 12);

/** Something that happens at a moment of virtual time. */
interface Scheduled {
  readonly atMs: number;
  /** The one that was scheduled first comes first of two at the same moment. */
  readonly number: number;
  readonly process: SimulatedProcess | undefined;
  readonly run: () => void;
  isCancelled: boolean;
}

/** The process whose code is running. Promises and timers carry it on. */
const running = new AsyncLocalStorage<SimulatedProcess>();

const require = createRequire(import.meta.url);
const timersPromises = require('node:timers/promises') as Record<string, unknown>;
const timers = require('node:timers') as Record<string, unknown>;
const crypto = require('node:crypto') as Record<string, unknown>;
const nextTurnOfEventLoop = setImmediate;

/**
 * The clock of a simulation. While it is installed, everything that measures time or waits uses it: timers, dates,
 * `performance.now`, `AbortSignal.timeout`. It advances from one scheduled moment to the next without waiting, and random
 * numbers and UUIDs come from the seed.
 *
 * The code of a process runs with that process as its owner. What a killed process has scheduled never happens; what a
 * frozen one has scheduled happens once it goes on.
 */
export class VirtualTime {
  readonly #random: () => number;
  readonly #uuid: () => string;
  readonly #queue: Scheduled[] = [];
  /** Each has a delay ignore its signal. */
  readonly #aborts = new Set<() => void>();
  #scheduled = 0;
  #nowMs = 0;
  /** How many things have happened. */
  happened = 0;

  /** @param random returns numbers in [0, 1) */
  constructor(random: () => number) {
    this.#random = random;
    this.#uuid = () => uuidOf(random);
  }

  /** Milliseconds since the simulation began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Milliseconds since 1970, by the clock of the process that asks. */
  get dateMs(): number {
    return BEGINS_AT + Math.floor(this.#nowMs + (this.process?.clockAheadMs ?? 0));
  }

  get nextAtMs(): number | undefined {
    return this.#queue[0]?.atMs;
  }

  /** Runs code as a process. */
  runAs<Result>(process: SimulatedProcess | undefined, work: () => Result): Result {
    return process ? running.run(process, work) : running.exit(work);
  }

  /** Returns the process whose code is running. */
  get process(): SimulatedProcess | undefined {
    return running.getStore();
  }

  /** Has something happen later. Returns a function that cancels it. */
  after(ms: number, run: () => void, process: SimulatedProcess | undefined = undefined): () => void {
    const atMs = this.#nowMs + Math.max(0, Number.isFinite(ms) ? ms : 1);
    this.#scheduled += 1;
    const scheduled: Scheduled = { atMs, number: this.#scheduled, process, run, isCancelled: false };
    this.#insert(scheduled);
    return () => {
      scheduled.isCancelled = true;
    };
  }

  /** Resolves after some time; for simulated servers, which are never killed or frozen as processes are. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Lets everything happen up to a moment, or until `isOver` returns true. */
  async runUntil(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    await settled();
    while (!isOver()) {
      const next = this.#queue[0];
      if (!next || next.atMs > untilMs) break;
      this.#take();
      if (next.isCancelled) continue;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      const { process, run } = next;
      if (process?.isDead) continue;
      if (process?.isFrozen) {
        process.whenThawed(run);
        continue;
      }
      this.happened += 1;
      this.runAs(process, run);
      await settled();
    }
    if (!isOver()) this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Replaces the clocks, timers and random numbers of this process. Returns a function that restores them. */
  install(): () => void {
    const replaced = [
      replace(globalThis, this.#globals()),
      replace(performance, { now: () => this.#nowMs }),
      replace(Math, { random: this.#random }),
      replace(AbortSignal, { timeout: (ms: number) => this.#abortAfter(ms) }),
      replace(timersPromises, {
        setTimeout: (ms?: number, value?: unknown, options?: { signal?: AbortSignal }) =>
          this.#delay(ms ?? 1, value, options?.signal),
        setImmediate: (value?: unknown) => this.#delay(0, value),
      }),
      replace(timers, this.#timers()),
      replace(crypto, { randomUUID: this.#uuid, randomUUIDv7: () => uuidV7Of(this.dateMs, this.#uuid()) }),
    ];
    syncBuiltinESMExports();
    return () => {
      for (const restore of replaced) restore();
      syncBuiltinESMExports();
      // Node.js keeps signals that depend on others as long as they have listeners, and with them all of the simulation.
      for (const ignoreSignal of this.#aborts) ignoreSignal();
      this.#queue.length = 0;
    };
  }

  #globals(): Record<string, unknown> {
    const RealDate = Date;
    const VirtualDate = new Proxy(RealDate, {
      construct: (target, given: unknown[]) =>
        Reflect.construct(target, given.length === 0 ? [this.dateMs] : given) as object,
      get: (target, name) => (name === 'now' ? () => this.dateMs : Reflect.get(target, name)),
    });
    return { ...this.#timers(), Date: VirtualDate };
  }

  #timers(): Record<string, unknown> {
    const clear = (timer: unknown) => (timer as VirtualTimer | undefined)?.close?.();
    return {
      setTimeout: (run: (...given: unknown[]) => void, ms = 1, ...given: unknown[]) =>
        new VirtualTimer(this, () => run(...given), ms, false),
      setInterval: (run: (...given: unknown[]) => void, ms = 1, ...given: unknown[]) =>
        new VirtualTimer(this, () => run(...given), ms, true),
      setImmediate: (run: (...given: unknown[]) => void, ...given: unknown[]) =>
        new VirtualTimer(this, () => run(...given), 0, false),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    };
  }

  #abortAfter(ms: number): AbortSignal {
    const aborting = new AbortController();
    this.after(ms, () => aborting.abort(new DOMException('The operation timed out', 'TimeoutError')), this.process);
    return aborting.signal;
  }

  #delay(ms: number, value: unknown, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        cancel();
        this.#aborts.delete(ignoreSignal);
        reject(signal?.reason);
      };
      const ignoreSignal = () => {
        signal?.removeEventListener('abort', abort);
        this.#aborts.delete(ignoreSignal);
      };
      const fire = () => {
        ignoreSignal();
        resolve(value);
      };
      const cancel = this.after(ms, fire, this.process);
      if (signal?.aborted) abort();
      else if (signal) {
        signal.addEventListener('abort', abort, { once: true });
        this.#aborts.add(ignoreSignal);
      }
    });
  }

  /** A binary heap, the earliest first. */
  #insert(scheduled: Scheduled): void {
    const heap = this.#queue;
    let index = heap.push(scheduled) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (isBefore(heap[parent] as Scheduled, scheduled)) break;
      heap[index] = heap[parent] as Scheduled;
      index = parent;
    }
    heap[index] = scheduled;
  }

  #take(): void {
    const heap = this.#queue;
    const last = heap.pop() as Scheduled;
    if (heap.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Scheduled, heap[child] as Scheduled)) child += 1;
      if (isBefore(last, heap[child] as Scheduled)) break;
      heap[index] = heap[child] as Scheduled;
      index = child;
    }
    heap[index] = last;
  }
}

/** What `setTimeout` returns while the clock is installed. */
class VirtualTimer {
  readonly #time: VirtualTime;
  readonly #run: () => void;
  readonly #ms: number;
  readonly #repeats: boolean;
  #cancel: () => void;

  constructor(time: VirtualTime, run: () => void, ms: number, repeats: boolean) {
    this.#time = time;
    this.#run = run;
    this.#ms = ms;
    this.#repeats = repeats;
    this.#cancel = this.#start();
  }

  refresh(): this {
    this.#cancel();
    this.#cancel = this.#start();
    return this;
  }

  close(): void {
    this.#cancel();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  #start(): () => void {
    const fire = () => {
      if (this.#repeats) this.#cancel = this.#start();
      this.#run();
    };
    return this.#time.after(this.#ms, fire, this.#time.process);
  }
}

function isBefore(one: Scheduled, other: Scheduled): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.number < other.number);
}

/** Resolves when all promises that can go on have done so. */
function settled(): Promise<void> {
  return new Promise((resolve) => nextTurnOfEventLoop(resolve));
}

/** Replaces properties, and returns a function that restores them. */
function replace(target: object, replacements: Readonly<Record<string, unknown>>): () => void {
  const names = Object.keys(replacements);
  const before = new Map(names.map((name) => [name, Object.getOwnPropertyDescriptor(target, name)]));
  for (const name of names) {
    Object.defineProperty(target, name, { value: replacements[name], configurable: true, writable: true });
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(target, name, descriptor);
      else Reflect.deleteProperty(target, name);
    }
  };
}

function uuidOf(random: () => number): string {
  const digits = Array.from({ length: 4 }, () =>
    Math.floor(random() * 0x1_0000_0000)
      .toString(16)
      .padStart(8, '0'),
  ).join('');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20)}`;
}

/** Puts a time into a random UUID. @param ms since 1970 */
function uuidV7Of(ms: number, uuid: string): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${uuid.slice(15)}`;
}

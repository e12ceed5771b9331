import { refusalError } from '../clickhouse/refusal.ts';
import type { VirtualTime } from '../world/virtual-time.ts';

/** After how long a replica gives up a request that Keeper does not answer, and its session with it, in milliseconds. */
const OPERATION_MS = 250;

interface KeeperSessionOptions {
  /** For how long Keeper keeps it once its connection is lost, in milliseconds: until then it may apply what was sent in it. */
  readonly timeoutMs: number;
  /** Called when it is lost. */
  readonly onLost: () => void;
}

/** A session of a replica in Keeper. What is sent in it is applied later, and may be so although the replica has lost the session by then. */
export class KeeperSession {
  readonly #time: VirtualTime;
  readonly beganAtMs: number;
  #isLost = false;
  /** Called when it is lost; those who wait for what was sent in it. */
  readonly #waiting = new Set<() => void>();

  readonly #options: KeeperSessionOptions;

  /** @param ageMs how long it has been there */
  constructor(time: VirtualTime, options: KeeperSessionOptions, ageMs = 0) {
    this.#time = time;
    this.#options = options;
    this.beganAtMs = time.nowMs - ageMs;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** The replica has lost its connection. Whoever waits for what was sent never learns what became of it. */
  lose(): void {
    if (this.isLost) return;
    this.#isLost = true;
    for (const tell of this.#waiting) tell();
    this.#options.onLost();
  }

  /**
   * Sends what is to be committed. It resolves when that is done.
   *
   * @param ms for how long the request is under way
   * @param end called once it is committed, or will never be
   * @throws {ClickHouseError} when the session is lost before; what was sent may still be committed
   */
  async send(ms: number, commit: () => void, end: () => void): Promise<void> {
    const answered = Promise.withResolvers<void>();
    let isOver = false;
    const finish = (isCommitted: boolean) => {
      if (isOver) return;
      isOver = true;
      if (isCommitted) commit();
      end();
      answered.resolve();
    };
    const lose = () => {
      answered.reject(refusalError('UNKNOWN_STATUS_OF_INSERT'));
      this.#time.after(this.#options.timeoutMs, () => finish(false));
    };
    this.#waiting.add(lose);
    this.#time.after(ms, () => finish(true));
    const stopWaiting = this.#time.after(OPERATION_MS, () => this.lose());
    try {
      await answered.promise;
    } finally {
      stopWaiting();
      this.#waiting.delete(lose);
    }
  }
}

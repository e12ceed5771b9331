/** In how many parts of its age a value is polled again: a poll that takes long is still in time. */
const POLLS_OF_AGE = 2.5;

/** Polling pauses when no request has come for so long, in milliseconds. The next request waits for a poll. */
const IDLE_MS = 10_000;

export interface FreshPollOptions {
  /** How old the value may be, in milliseconds. Counted from the start of the poll, which sees all that was stored before. */
  readonly freshMs: number;
  /** Returns a time in milliseconds. Default: that of `performance`. */
  readonly now?: () => number;
}

interface Poll<Value> {
  readonly startedAt: number;
  readonly value: Value;
}

/**
 * Keeps a small fact of ClickHouse at hand that every request needs. A background loop polls it, so that a request costs
 * nothing: it waits only when the last successful poll is too old, and then all requests wait for the same one. No more
 * than one poll runs at a time, also while ClickHouse does not respond. A poll may take as long as a query: a busy
 * ClickHouse makes requests wait, it does not refuse them.
 */
export class FreshPoll<Value> {
  readonly #query: (signal: AbortSignal) => Promise<Value>;
  readonly #freshMs: number;
  readonly #now: () => number;
  #last: Poll<Value> | undefined;
  #polling: Promise<Poll<Value>> | undefined;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  readonly #stopping = new AbortController();

  constructor(
    query: (signal: AbortSignal) => Promise<Value>,
    { freshMs, now = performance.now.bind(performance) }: FreshPollOptions,
  ) {
    this.#query = query;
    this.#freshMs = freshMs;
    this.#now = now;
  }

  start(): void {
    this.#timer ??= setInterval(() => this.#pollInBackground(), this.#freshMs / POLLS_OF_AGE);
  }

  /** Ends the poll that runs. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopping.abort();
    await this.#polling?.catch(() => undefined);
  }

  /** Returns the value, as it was `freshMs` ago or later. @throws what the query throws */
  async value(): Promise<Value> {
    this.#requestedAt = this.#now();
    return await this.look();
  }

  /** As {@link value}, and polling does not go on because of it. */
  async look(): Promise<Value> {
    if (this.#isFresh(this.#last)) return this.#last.value;
    const poll = await this.#poll();
    // One that was under way for too long may have missed a change.
    return (this.#isFresh(poll) ? poll : await this.#poll()).value;
  }

  #isFresh(poll: Poll<Value> | undefined): poll is Poll<Value> {
    return poll !== undefined && this.#now() - poll.startedAt <= this.#freshMs;
  }

  #pollInBackground(): void {
    if (this.#now() - this.#requestedAt > IDLE_MS || this.#polling) return;
    // A failure concerns the requests: they wait for a poll of their own once this one's predecessor is too old.
    this.#poll().catch(() => undefined);
  }

  /** Joins the poll that runs, or starts one. */
  async #poll(): Promise<Poll<Value>> {
    this.#polling ??= this.#ask().finally(() => {
      this.#polling = undefined;
    });
    return await this.#polling;
  }

  async #ask(): Promise<Poll<Value>> {
    const startedAt = this.#now();
    this.#last = { startedAt, value: await this.#query(this.#stopping.signal) };
    return this.#last;
  }
}

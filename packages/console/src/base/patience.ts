import { ApiError } from './api.ts';

/** Runs tasks, so many at once; the others wait in their order. */
export class Slots {
  readonly #max: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns what a task returns, once it had a slot; throws what the task throws. */
  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.#max) this.#running += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}

const ATTEMPTS_MAX = 5;

/**
 * Returns what a request returns. While query-api is busy, the request is sent again after the time that query-api says, five
 * times in all.
 *
 * @throws {ApiError} as the request does, that of the last attempt
 */
export async function patiently<Result>(send: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      const waitMs = error instanceof ApiError ? error.retryAfterMs : undefined;
      if (waitMs === undefined || attempt === ATTEMPTS_MAX || signal.aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
}

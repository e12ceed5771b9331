export interface MeasurementOptions<Result> {
  /** Measures. It must end soon after the signal aborts. */
  readonly measure: (signal: AbortSignal) => Promise<Result>;
  /** How long a result is used again, in milliseconds. */
  readonly freshMs: number;
  /** After how long a measurement is given up, in milliseconds. */
  readonly timeoutMs: number;
  /** Called with what a measurement throws. */
  readonly onFailure?: (error: unknown) => void;
  /** Called after each measurement that succeeds. */
  readonly onSuccess?: () => void;
}

/**
 * What metrics say of another system: it is measured when somebody reads it, once for all who read it at the same time
 * or soon after, and never for longer than a scrape may take.
 */
export class Measurement<Result> {
  readonly #options: MeasurementOptions<Result>;
  #result: Promise<Result | undefined> | undefined;
  /** When the last one ended, on the clock of `performance`, which nobody sets. */
  #endedAt = 0;

  constructor(options: MeasurementOptions<Result>) {
    this.#options = options;
  }

  /** Returns the result, at most `freshMs` old; `undefined` when it cannot be measured in time. Never throws. */
  async read(): Promise<Result | undefined> {
    if (!this.#result || performance.now() - this.#endedAt > this.#options.freshMs) {
      this.#endedAt = Number.POSITIVE_INFINITY;
      this.#result = this.#measureInTime().finally(() => {
        this.#endedAt = performance.now();
      });
    }
    return await this.#result;
  }

  /** Resolves when no measurement is under way. */
  async settled(): Promise<void> {
    await this.#result;
  }

  async #measureInTime(): Promise<Result | undefined> {
    const { measure, timeoutMs, onFailure, onSuccess } = this.#options;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(new Error(`no response within ${timeoutMs} ms`)), timeoutMs);
    try {
      const result = await measure(timeout.signal);
      onSuccess?.();
      return result;
    } catch (error) {
      onFailure?.(timeout.signal.aborted ? timeout.signal.reason : error);
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** How long a result is used again, in milliseconds, so that health checks cannot load what they check. */
const FRESH_MS = 1_000;

/** Checks whether something can be reached. */
export class Probe {
  readonly #phrase: (error: unknown) => string;
  readonly #timeoutMs: number;
  readonly #request: () => Promise<unknown>;
  #result: Promise<string | undefined> | undefined;
  /** On the clock of `performance`, which nobody sets. */
  #startedAt = 0;

  /**
   * `request` runs at most once a second, and counts as failed after `timeoutMs`.
   *
   * @param phrase what is missing then; a function of the error where it says more than one thing
   */
  constructor(phrase: string | ((error: unknown) => string), timeoutMs: number, request: () => Promise<unknown>) {
    this.#phrase = typeof phrase === 'string' ? () => phrase : phrase;
    this.#timeoutMs = timeoutMs;
    this.#request = request;
  }

  /** Resolves to `undefined` when it can be reached, else to the phrase. */
  check(): Promise<string | undefined> {
    if (!this.#result || performance.now() - this.#startedAt > FRESH_MS) {
      this.#startedAt = performance.now();
      this.#result = this.#ask();
    }
    return this.#result;
  }

  async #ask(): Promise<string | undefined> {
    const timeout = Promise.withResolvers<never>();
    const timer = setTimeout(() => timeout.reject(new Error('no response in time')), this.#timeoutMs);
    try {
      await Promise.race([this.#request(), timeout.promise]);
      return undefined;
    } catch (error) {
      return this.#phrase(error);
    } finally {
      clearTimeout(timer);
    }
  }
}

import { withHint } from './connection-hints.ts';

/** How long a result is used again, in milliseconds, so that health checks cannot load what they check. */
const FRESH_MS = 1_000;

/** Checks whether something can be reached. */
export class Probe {
  readonly #phrase: string;
  readonly #timeoutMs: number;
  readonly #request: () => Promise<unknown>;
  readonly #hint: (error: unknown) => string | undefined;
  #result: Promise<string | undefined> | undefined;
  /** On the clock of `performance`, which nobody sets. */
  #startedAt = 0;

  /**
   * `request` runs at most once a second, and counts as failed after `timeoutMs`.
   *
   * @param hint returns what to check after an error, which is added to the phrase. Default: nothing
   */
  constructor(
    phrase: string,
    timeoutMs: number,
    request: () => Promise<unknown>,
    hint: (error: unknown) => string | undefined = () => undefined,
  ) {
    this.#phrase = phrase;
    this.#timeoutMs = timeoutMs;
    this.#request = request;
    this.#hint = hint;
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
      return withHint(this.#phrase, this.#hint(error));
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Notices when something that should keep happening has stopped: calls `onSilence` once when {@link alive} was not called
 * for `silenceMs`. kafkajs can stop fetching without a crash event; only a restart of the process helps then.
 */
export class Watchdog {
  readonly #silenceMs: number;
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(silenceMs: number, onSilence: () => void) {
    this.#silenceMs = silenceMs;
    this.#onSilence = onSilence;
  }

  /** Reports that it has happened. The first call begins the watch. */
  alive(): void {
    if (this.#isStopped) return;
    if (this.#timer) this.#timer.refresh();
    else this.#timer = setTimeout(this.#onSilence, this.#silenceMs);
  }

  /** Suspends the watch until the next call of {@link alive}. */
  pause(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  stop(): void {
    this.#isStopped = true;
    this.pause();
  }
}

/** Over how long a time the load is measured, in milliseconds. */
const WINDOW_MS = 100;

/** A process that is asked this often is fully loaded, however little of its time that takes. */
const CALLS_PER_SECOND_FULL = 500;

/** Measures how busy this process is. */
export class LoadMeter {
  #since = performance.eventLoopUtilization();
  #calls = 0;
  #share = 0;

  /** Counts something that came to be sent. */
  count(): void {
    this.#calls += 1;
  }

  /**
   * Returns how busy the process was just now, from 0 to 1: the share of its event loop's time that was work, or how
   * many calls were counted, whichever is more. By its time alone, one of many processes on a busy machine would seem to
   * have little to do, and would send few rows at a time.
   */
  share(): number {
    const { active, idle, utilization } = performance.eventLoopUtilization(this.#since);
    const ms = active + idle;
    if (ms >= WINDOW_MS) {
      this.#share = Math.min(1, Math.max(utilization, (this.#calls * 1_000) / ms / CALLS_PER_SECOND_FULL));
      this.#since = performance.eventLoopUtilization();
      this.#calls = 0;
    }
    return this.#share;
  }
}

/** Within which time a stamped event with the same uuid is a repeat, in milliseconds. */
const REPEATED_WITHIN_MS = 600_000;

interface Period {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly until: number;
}

/** An event, as far as it says what it repeats. */
export interface Timed {
  /** The timestamp, in milliseconds since 1970. */
  readonly ms: number;
  /** In microseconds since 1970. */
  readonly received: number;
}

/**
 * Events of one workspace and uuid. Another one repeats one of them, if both have the same timestamp, or if the other one is
 * stamped, and the first is timed by its receipt and within ten minutes of it.
 */
export class Originals {
  readonly #times = new Map<number, number>();
  readonly #periods = new Map<number, Period>();

  /** @param until up to which time of receipt others repeat it */
  add(event: Timed, until: number): void {
    const { ms } = event;
    this.#times.set(ms, Math.max(until, this.#times.get(ms) ?? 0));
    if (!isTimedByReceipt(event)) return;
    const period = Math.floor(ms / REPEATED_WITHIN_MS);
    const known = this.#periods.get(period) ?? { firstMs: ms, lastMs: ms, until };
    this.#periods.set(period, {
      firstMs: Math.min(known.firstMs, ms),
      lastMs: Math.max(known.lastMs, ms),
      until: Math.max(known.until, until),
    });
  }

  /** Whether an event repeats one of them. */
  hasOriginalOf({ ms, received }: Timed, isStamped: boolean): boolean {
    if ((this.#times.get(ms) ?? 0) >= received) return true;
    if (!isStamped) return false;
    const period = Math.floor(ms / REPEATED_WITHIN_MS);
    return [period - 1, period, period + 1].some((number) => {
      const found = this.#periods.get(number);
      if (!found || found.until < received) return false;
      return found.firstMs <= ms + REPEATED_WITHIN_MS && found.lastMs >= ms - REPEATED_WITHIN_MS;
    });
  }
}

export function isTimedByReceipt({ ms, received }: Timed): boolean {
  return ms === Math.floor(received / 1_000);
}

/** Whether an event repeats another one. */
export function repeats(event: Timed, isStamped: boolean, other: Timed): boolean {
  if (event.ms === other.ms) return true;
  return isStamped && isTimedByReceipt(other) && Math.abs(event.ms - other.ms) <= REPEATED_WITHIN_MS;
}

/** Within which time a stamped event with the same workspace and uuid is a repeat, in milliseconds: a period. */
export const REPEATED_WITHIN_MS = 600_000;

/** How many ranges of time are looked up for a batch: each costs a statement. */
export const LOOK_UPS_MAX = 16;

/** When the stamped events of a batch are. */
export interface StampedTimes {
  /** The first and the last one, in milliseconds since 1970. */
  readonly first_stamped: number;
  readonly last_stamped: number;
  /** The periods of ten minutes since 1970 that have one, each once, in their order. */
  readonly stamped_periods: readonly number[];
}

/** The first and the last time of stamped events, both included, in milliseconds since 1970. */
export interface TimeRange {
  readonly first_stamped: number;
  readonly last_stamped: number;
}

/** An event of a batch, or a stored one, as far as it says which events are repeats. */
export interface Submitted {
  /** The place of a staged event in the order of its batch, from 0; -1 for a stored one. */
  readonly place: number;
  readonly workspace_id: string;
  readonly uuid: string;
  /** The timestamp, in milliseconds since 1970. */
  readonly time_ms: number;
  /** 1 when the timestamp is that of the receipt, which each stamped event has; else 0. */
  readonly timed_by_receipt: 0 | 1;
  /** 1 for a stamped event, else 0. */
  readonly stamped: 0 | 1;
}

/**
 * Returns the places of the events that are repeats. An event repeats an earlier one that stays,
 *
 * - if both have the same workspace, uuid and timestamp, or
 * - if it is stamped, and the earlier one has the same workspace and uuid, is timed by its receipt, and within ten
 *   minutes of it. An event with a timestamp of its own has another identity, so no stamped event repeats it.
 *
 * All that have the same uuid come from one partition of Kafka, so their order is that of its log. Each one thus has the same
 * result whatever batches they come in, which is why servers that are fed from one log store the same rows.
 *
 * @param events in the order of their places; those that are stored already come first, and stay
 */
export function repeatsAmong(events: Iterable<Submitted>): number[] {
  const staying = new Map<string, StayingEvents>();
  const repeats: number[] = [];
  for (const { place, workspace_id, uuid, time_ms, timed_by_receipt, stamped } of events) {
    const identity = `${workspace_id}\0${uuid}`;
    const earlier = staying.get(identity) ?? new StayingEvents();
    staying.set(identity, earlier);
    const isRepeat = earlier.has(time_ms) || (stamped === 1 && earlier.hasNear(time_ms));
    if (place >= 0 && isRepeat) repeats.push(place);
    else earlier.add(time_ms, timed_by_receipt === 1);
  }
  return repeats;
}

/**
 * Returns the ranges of time around which the events are looked up that stamped ones may repeat. A batch may have events that are
 * months apart: what is between them is not read, except for the smallest gaps where there would be too many ranges.
 */
export function rangesToLookUp({ stamped_periods: periods, first_stamped, last_stamped }: StampedTimes): TimeRange[] {
  const gaps = periods.flatMap((period, index) => {
    const size = period - (periods[index - 1] ?? period);
    // The look-ups on both sides of a smaller one meet.
    return size > 2 ? [{ index, size }] : [];
  });
  const widest = gaps.sort((one, other) => other.size - one.size).slice(0, LOOK_UPS_MAX - 1);
  const starts = [0, ...widest.map(({ index }) => index).sort((one, other) => one - other)];
  return starts.flatMap((start, index) => {
    const [first, last] = [periods[start], periods[(starts[index + 1] ?? periods.length) - 1]];
    if (first === undefined || last === undefined) return [];
    return {
      first_stamped: Math.max(first_stamped, first * REPEATED_WITHIN_MS),
      last_stamped: Math.min(last_stamped, (last + 1) * REPEATED_WITHIN_MS - 1),
    };
  });
}

/** The events of one workspace and uuid that stay. Each call takes the same time, however many there are. */
class StayingEvents {
  readonly #times = new Set<number>();
  /** The first and the last time of those that are timed by their receipt, by their period of ten minutes. */
  readonly #periods = new Map<number, { readonly firstMs: number; readonly lastMs: number }>();

  has(timeMs: number): boolean {
    return this.#times.has(timeMs);
  }

  /** Whether one that is timed by its receipt is within ten minutes. */
  hasNear(timeMs: number): boolean {
    const period = periodOf(timeMs);
    if (this.#periods.has(period)) return true;
    const [before, after] = [this.#periods.get(period - 1), this.#periods.get(period + 1)];
    return (
      (before !== undefined && timeMs - before.lastMs <= REPEATED_WITHIN_MS) ||
      (after !== undefined && after.firstMs - timeMs <= REPEATED_WITHIN_MS)
    );
  }

  add(timeMs: number, isTimedByReceipt: boolean): void {
    this.#times.add(timeMs);
    if (!isTimedByReceipt) return;
    const { firstMs, lastMs } = this.#periods.get(periodOf(timeMs)) ?? { firstMs: timeMs, lastMs: timeMs };
    const times = { firstMs: Math.min(firstMs, timeMs), lastMs: Math.max(lastMs, timeMs) };
    this.#periods.set(periodOf(timeMs), times);
  }
}

function periodOf(timeMs: number): number {
  return Math.floor(timeMs / REPEATED_WITHIN_MS);
}

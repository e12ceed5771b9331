import { aheadOf, type ClockReading } from '@sluice/shared/base/clock-comparison';
import { type Check, note, ok, wrong } from './check.ts';

export interface Reading extends ClockReading {
  /** Whose clock it is. */
  readonly of: string;
}

/** Compares the clock of this machine with those that other checks have read. */
export class Clocks {
  readonly #closest = new Map<string, Reading>();

  /** Of each clock the reading counts that took the least time: within that time the clocks may agree. */
  add(reading: Reading): void {
    const before = this.#closest.get(reading.of);
    if (!before || reading.tookMs < before.tookMs) this.#closest.set(reading.of, reading);
  }

  /** @param limitMs by how much clocks may differ */
  check(limitMs: number): Check {
    return {
      name: 'clock',
      why: 'Versions come from the clocks of the ingest-apis: they decide which change wins, and what a deletion hides.',
      run: async () => {
        const readings = [...this.#closest.values()];
        if (readings.length === 0) return note('no other clock could be read', 'See the lines above.');
        const sides = readings.map(({ of, ...reading }) => ({ of, aheadMs: aheadOf(reading) }));
        const differing = sides.filter(({ aheadMs }) => Math.abs(aheadMs) > limitMs);
        const shown = (some: typeof sides) => some.map(({ of, aheadMs }) => `${describe(aheadMs)} ${of}`).join(', ');
        if (differing.length === 0) return ok(`the clock of this machine is ${shown(sides)}`);
        return wrong(
          `the clock of this machine is ${shown(differing)}`,
          'Have NTP set the clocks of all machines; ingest-api responds 503 while its clock is wrong.',
        );
      },
    };
  }
}

function describe(aheadMs: number): string {
  if (Math.abs(aheadMs) < 100) return 'that of';
  return `${(Math.abs(aheadMs) / 1_000).toFixed(1)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}

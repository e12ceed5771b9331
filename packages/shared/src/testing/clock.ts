import { onTestFinished, vi } from 'vitest';

/** Lets the wall clock of this process show another time, where it stands still, until the test has ended. */
function shiftClock(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
  onTestFinished(() => void vi.useRealTimers());
}

const HOUR_MS = 3_600_000;

/** Sets the wall clock of this process back by an hour, until the test has ended. */
export function setClockBack(): void {
  shiftClock(-HOUR_MS);
}

/** Sets the wall clock of this process ahead by an hour, until the test has ended. */
export function setClockAhead(): void {
  shiftClock(HOUR_MS);
}

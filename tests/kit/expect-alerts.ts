import { TooLate } from '@sluice/shared/testing/until';
import { expect } from 'vitest';

/** What a busy machine causes for a moment, without a fault. */
const OF_A_BUSY_MACHINE: readonly string[] = [
  ...['SluiceServiceDown', 'SluiceLagging', 'SluiceBatchesFailing'],
  'SluiceObjectiveAtRisk',
];

/** Whether a busy machine may cause this alert for a moment, without a fault. */
export function isOfABusyMachine(alert: string): boolean {
  return OF_A_BUSY_MACHINE.includes(alert);
}

/**
 * Expects alerts, each of them and no other one, in any order and however often.
 *
 * @throws {TooLate} when none is missing, and what is too many only a busy machine causes: then the machine was too busy
 */
export function expectAlerts(seen: readonly string[], expected: readonly string[]): void {
  const found = [...new Set(seen)].sort();
  const others = found.filter((alert) => !expected.includes(alert));
  const isComplete = expected.every((alert) => found.includes(alert));
  if (isComplete && others.length > 0 && others.every(isOfABusyMachine)) {
    throw new TooLate(`the machine was too busy for its load: ${others.join(', ')}`);
  }
  expect(found).toEqual(expected.toSorted());
}

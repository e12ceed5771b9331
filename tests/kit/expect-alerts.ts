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

/** Whether an alert is for what users notice of any fault, such as a few requests that a busy machine did not serve in time. */
export function isSymptom(alert: string): boolean {
  return alert === 'SluiceObjectiveAtRisk';
}

/**
 * Expects alerts, each of them and no other one, in any order and however often. Beside expected ones there may be symptoms.
 *
 * @throws {TooLate} when none is missing, and what is too many only a busy machine causes: then the machine was too busy
 */
export function expectAlerts(seen: readonly string[], expected: readonly string[]): void {
  const isBesideFaults = (alert: string) => expected.length > 0 && !expected.includes(alert) && isSymptom(alert);
  const found = [...new Set(seen)].filter((alert) => !isBesideFaults(alert)).sort();
  const others = found.filter((alert) => !expected.includes(alert));
  const isComplete = expected.every((alert) => found.includes(alert));
  if (isComplete && others.length > 0 && others.every(isOfABusyMachine)) {
    throw new TooLate(`the machine was too busy for its load: ${others.join(', ')}`);
  }
  expect(found).toEqual(expected.toSorted());
}

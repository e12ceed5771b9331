import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TooLate } from '@sluice/shared/testing/until';
import { expect, test } from 'vitest';
import { expectAlerts, isOfABusyMachine } from './expect-alerts.ts';
import { readAlertRules } from './scaled-rules.ts';

const errorOf = (seen: readonly string[], expected: readonly string[]): unknown => {
  try {
    expectAlerts(seen, expected);
    return undefined;
  } catch (error) {
    return error;
  }
};

test('exactly what is expected passes, in any order and however often', () => {
  expect(errorOf([], [])).toBeUndefined();
  expect(errorOf(['SluiceStuck', 'SluiceLagging', 'SluiceStuck'], ['SluiceLagging', 'SluiceStuck'])).toBeUndefined();
});

test('a symptom beside the alert of its fault passes, and alone is late', () => {
  expect(errorOf(['SluiceStuck', 'SluiceObjectiveAtRisk'], ['SluiceStuck'])).toBeUndefined();
  expect(errorOf(['SluiceObjectiveAtRisk'], [])).toBeInstanceOf(TooLate);
  expect(errorOf(['SluiceStuck'], ['SluiceStuck', 'SluiceObjectiveAtRisk'])).toBeInstanceOf(Error);
});

test('what only a busy machine causes, and is too many, is late and no fault', () => {
  expect(errorOf(['SluiceLagging'], [])).toBeInstanceOf(TooLate);
  expect(errorOf(['SluiceServiceDown', 'SluiceBatchesFailing', 'SluiceStuck'], ['SluiceStuck'])).toBeInstanceOf(
    TooLate,
  );
});

test.each([
  ['an alert without a fault', ['SluiceDeadLetters'], []],
  ['an alert without a fault, beside that of a busy machine', ['SluiceDeadLetters', 'SluiceLagging'], []],
  ['an alert that is missing', [], ['SluiceStuck']],
  ['an alert that is missing, beside that of a busy machine', ['SluiceLagging'], ['SluiceStuck']],
  ['an alert of a busy machine that is missing', [], ['SluiceLagging']],
] as const)('%s is a fault, however busy the machine is', (_, seen, expected) => {
  const error = errorOf(seen, expected);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(TooLate);
});

test('few of the alerts are those of a busy machine', async () => {
  const rules = readAlertRules(
    await readFile(join(import.meta.dirname, '../../deploy/prometheus/sluice.rules.yml'), 'utf8'),
  );
  const ofBusy = new Set(rules.map(({ alert }) => alert).filter(isOfABusyMachine));
  expect([...ofBusy].sort()).toEqual([
    ...['SluiceBatchesFailing', 'SluiceLagging', 'SluiceObjectiveAtRisk', 'SluiceServiceDown'],
  ]);
});

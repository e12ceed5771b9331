import { describe, expect, test } from 'vitest';
import type { Alert, Condition } from './alert.ts';
import { changeInPercent, holds, judged, NEW_STATE, stateOf, statusOf } from './alert-state.ts';

const of = (value: number | null, before: number | null = null) => ({ value, before });

describe('a condition holds', () => {
  test.each<[Condition, ReturnType<typeof of>, boolean]>([
    [{ is: 'above', threshold: 10 }, of(10), false],
    [{ is: 'above', threshold: 10 }, of(10.1), true],
    [{ is: 'above', threshold: -1 }, of(0), true],
    [{ is: 'above', threshold: -1 }, of(null), false],
    [{ is: 'below', threshold: 10 }, of(10), false],
    [{ is: 'below', threshold: 10 }, of(9.9), true],
    [{ is: 'below', threshold: 10 }, of(0), true],
    [{ is: 'below', threshold: 10 }, of(null), false],
    [{ is: 'absent' }, of(0), true],
    [{ is: 'absent' }, of(null), true],
    [{ is: 'absent' }, of(-1), false],
    [{ is: 'changes', percent: 50 }, of(150, 100), true],
    [{ is: 'changes', percent: 50 }, of(149, 100), false],
    [{ is: 'changes', percent: 50 }, of(50, 100), true],
    [{ is: 'changes', percent: 50 }, of(51, 100), false],
    [{ is: 'changes', percent: 50 }, of(-50, -100), true],
    [{ is: 'changes', percent: 50 }, of(1, 0), true],
    [{ is: 'changes', percent: 50 }, of(0, 0), false],
    [{ is: 'changes', percent: 50 }, of(null, 100), false],
    [{ is: 'changes', percent: 50 }, of(100, null), false],
  ])('%j of %j: %s', (condition, evaluation, expected) => {
    expect(holds(condition, evaluation)).toBe(expected);
  });

  test('a change is one of the number before', () => {
    expect(changeInPercent(80, 100)).toBe(-20);
    expect(changeInPercent(5, -10)).toBe(150);
    expect(changeInPercent(3, 0)).toBe(Number.POSITIVE_INFINITY);
    expect(changeInPercent(3, null)).toBeUndefined();
  });
});

const ALERT: Alert = {
  ...{ name: 'Few', view: 'v', condition: { is: 'below', threshold: 10 } },
  ...{ window: '1h', for: 3, format: 'signed' },
};

/** Judges one number after the other, and returns what fires. */
function judgeAll(alert: Alert, values: readonly number[]): string {
  let state = stateOf(alert, NEW_STATE);
  return values
    .map((value, index) => {
      state = judged(alert, state, { endMs: index + 1, ...of(value) });
      return statusOf(state);
    })
    .join(' ');
}

test('it fires when the condition held in enough evaluations in a row, and until it no longer does', () => {
  expect(judgeAll(ALERT, [9, 9, 10, 9, 9, 9, 9, 11, 9])).toBe(
    'pending pending ok pending pending firing firing ok pending',
  );
  expect(judgeAll({ ...ALERT, for: 1 }, [9, 10, 9])).toBe('firing ok firing');
});

test('another condition is judged anew, and what was sent of the one before still counts', () => {
  const firing = judged({ ...ALERT, for: 1 }, stateOf(ALERT, NEW_STATE), { endMs: 5, ...of(1) });
  const stored = { ...firing, of: stateOf(ALERT, NEW_STATE).of, messages: 4, messageAtMs: 7 };
  expect(stateOf({ ...ALERT, name: 'Other', format: 'slack' }, stored)).toBe(stored);
  for (const changed of [{ condition: { is: 'absent' } as const }, { window: '2h' }, { for: 1 }, { view: 'w' }]) {
    expect(stateOf({ ...ALERT, ...changed }, stored)).toMatchObject({
      ...{ endMs: 0, held: 0, value: null, firing: true, messages: 4, messageAtMs: 7 },
    });
  }
});

test('what keeps it from being judged is shown before all else', () => {
  const failed = { ...NEW_STATE, firing: true, endMs: 1, trouble: { kind: 'failed', reason: 'why' } as const };
  expect(statusOf(failed)).toBe('error');
  expect(statusOf({ ...failed, trouble: { kind: 'late', reason: 'why' } })).toBe('late');
  expect(statusOf(NEW_STATE)).toBe('new');
});

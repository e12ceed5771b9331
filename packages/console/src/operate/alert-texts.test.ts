import { expect, test } from 'vitest';
import { conditionText, statusText } from './alert-texts.ts';

test('conditions as a person says them', () => {
  const text = (condition: Parameters<typeof conditionText>[0]['condition'], window: string, times = 1) =>
    conditionText({ condition, window, for: times });
  expect(text({ is: 'above', threshold: 1_000 }, '1h')).toBe('above 1,000 in the last hour');
  expect(text({ is: 'below', threshold: 0.5 }, '15m', 3)).toBe('below 0.5 in the last 15 minutes, 3 times in a row');
  expect(text({ is: 'changes', percent: 20 }, '7d')).toBe('changes by 20 % or more in the last 7 days');
  expect(text({ is: 'absent' }, '1d')).toBe('absent in the last day');
});

test('what keeps an alert from being judged is said, and whether it fires', () => {
  const alert = { state: 'active', status: 'firing', reason: null, firing: true } as const;
  expect(statusText(alert)).toBe('firing');
  expect(statusText({ ...alert, status: 'error', reason: 'The view is gone.' })).toBe(
    'error (fires): The view is gone.',
  );
  expect(statusText({ ...alert, state: 'paused' })).toBe('off, was firing');
});

import { setClockAhead } from '@sluice/shared/testing/clock';
import { expect, test } from 'vitest';
import { DeadLetterAlarm } from './dead-letter-alarm.ts';

test('the alarm is raised by more than 1 % of dead letters in five minutes, not by a few, and ends by itself', () => {
  let now = 0;
  const changes: (string | undefined)[] = [];
  const alarm = new DeadLetterAlarm({ now: () => now, onChange: (raised) => changes.push(raised) });
  alarm.count(0, 100);
  alarm.count(20_000, 0);
  alarm.count(0, 100);
  expect(alarm.raised()).toBeUndefined();
  alarm.count(0, 10);
  expect(alarm.raised()).toMatch(/^210 of the last 20210 rows could not be stored/);
  expect(changes).toEqual([alarm.raised()]);
  now += 6 * 60_000;
  expect(alarm.raised()).toBeUndefined();
  alarm.count(1, 0);
  expect(changes).toHaveLength(2);
});

test('the alarm does not end because the clock was set', () => {
  const alarm = new DeadLetterAlarm();
  alarm.count(0, 200);
  setClockAhead();
  expect(alarm.raised()).toMatch(/^200 of the last 200 rows/);
});
